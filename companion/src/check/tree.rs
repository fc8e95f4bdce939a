//! What a file of JSON or YAML says, and where in the file each part of it stands.
//!
//! The nodes lie in one list, in the order of the file, so that a document may be as deep as it likes, and
//! aliases of YAML are the same node in several places. Texts are kept as the file means them.

use core::ops::Range;

/// The documents of a file.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// The root of each document.
    pub(crate) roots: Vec<Id>,
}

/// Which node of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Id(usize);

/// A value, or the key of one.
#[derive(Debug)]
pub(crate) struct Node {
    /// In bytes of the text that the tree was made of.
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Scalar(Scalar),
    List(Vec<Id>),
    Object(Vec<Entry>),
}

/// What is neither a list nor an object.
#[derive(Debug)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Bare: a number, a flag, nothing, or in YAML a text.
    Plain,
    /// A text in a block of lines, or any other that is no other value whatever it looks like.
    Block,
    /// A text in single quotes.
    Quoted,
    /// A text in double quotes, with escapes.
    Escaped,
}

/// A key of an object and its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Id,
    pub(crate) value: Id,
}

impl Tree {
    pub(crate) fn add(&mut self, span: Range<usize>, kind: Kind) -> Id {
        self.nodes.push(Node { span, kind });
        Id(self.nodes.len() - 1)
    }

    pub(crate) fn node(&self, id: Id) -> Option<&Node> {
        self.nodes.get(id.0)
    }

    pub(crate) fn node_mut(&mut self, id: Id) -> Option<&mut Node> {
        self.nodes.get_mut(id.0)
    }

    /// All nodes in the order of the file.
    pub(crate) fn ids(&self) -> impl Iterator<Item = Id> {
        (0..self.nodes.len()).map(Id)
    }

    pub(crate) fn span(&self, id: Id) -> Range<usize> {
        self.node(id).map_or(0..0, |node| node.span.clone())
    }

    pub(crate) fn scalar(&self, id: Id) -> Option<&Scalar> {
        match &self.node(id)?.kind {
            Kind::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    pub(crate) fn text(&self, id: Id) -> Option<&str> {
        self.scalar(id).map(|scalar| scalar.text.as_str())
    }

    /// The entries, where this is an object.
    pub(crate) fn entries(&self, id: Id) -> &[Entry] {
        match self.node(id).map(|node| &node.kind) {
            Some(Kind::Object(entries)) => entries,
            _ => &[],
        }
    }

    pub(crate) fn items(&self, id: Id) -> &[Id] {
        match self.node(id).map(|node| &node.kind) {
            Some(Kind::List(items)) => items,
            _ => &[],
        }
    }

    pub(crate) fn is_object(&self, id: Id) -> bool {
        matches!(self.node(id), Some(Node { kind: Kind::Object(_), .. }))
    }

    /// The entry with this key, the first one unless `earlier` are to be passed over.
    pub(crate) fn entry(&self, id: Id, key: &str, earlier: usize) -> Option<Entry> {
        self.entries(id).iter().filter(|entry| self.text(entry.key) == Some(key)).nth(earlier).copied()
    }

    pub(crate) fn get(&self, id: Id, key: &str) -> Option<Id> {
        self.entry(id, key, 0).map(|entry| entry.value)
    }

    /// The text behind these keys.
    pub(crate) fn text_at(&self, id: Id, keys: &[&str]) -> Option<&str> {
        self.text(self.get_at(id, keys)?)
    }

    /// The value behind these keys.
    pub(crate) fn get_at(&self, id: Id, keys: &[&str]) -> Option<Id> {
        keys.iter().try_fold(id, |id, key| self.get(id, key))
    }
}
