//! YAML as a tree with places: `granit-parser` reads it, and here its events become nodes.

use core::ops::Range;
use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle};

use super::ended::{Block, Ended};
use super::lines;
use super::tree::{Entry, Id, Kind, Scalar, Style, Tree};

/// The most entries that merge keys may name: without a bound, a small file could be a huge tree.
const MAX_MERGED: usize = 10_000;

/// The most bytes of a scalar that is kept for each of its aliases.
const MAX_REPEATED_BYTES: usize = 256;

/// What keeps a text from being YAML.
#[derive(Debug)]
pub(crate) struct NotYaml {
    /// Where, in bytes.
    pub(crate) at: usize,
    pub(crate) reason: String,
    /// The text before that ended early, if that is plain to see.
    pub(crate) ended: Option<Ended>,
}

/// The tree of a text.
pub(crate) fn read(text: &str) -> Result<Tree, NotYaml> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let mut builder = Builder::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| {
            let at = error.marker().byte_offset().unwrap_or_default();
            let ended = builder.block.take().and_then(|block| Ended::new(text, &block, at));
            NotYaml { at, reason: error.info(), ended }
        })?;
        let span = span.byte_range().unwrap_or_default();
        // What is not written is shown by the sign before it.
        let is_unwritten = span.is_empty() && matches!(event, Event::Scalar(..));
        builder.on(event, if is_unwritten { lines::last_sign(text, span.start) } else { span })?;
    }
    Ok(builder.tree)
}

impl NotYaml {
    fn new(at: usize, reason: &str) -> Self {
        Self { at, reason: reason.to_owned(), ended: None }
    }
}

#[derive(Default)]
struct Builder {
    tree: Tree,
    /// The lists and objects that have not ended.
    open: Vec<Open>,
    anchors: HashMap<usize, Id>,
    merged: usize,
    /// The last text in a block of lines.
    block: Option<Block>,
}

struct Open {
    id: Id,
    /// Keys and values of an object, or the items of a list.
    children: Vec<Id>,
}

impl Builder {
    fn on(&mut self, event: Event<'_>, span: Range<usize>) -> Result<(), NotYaml> {
        match event {
            Event::Scalar(text, written, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                let style = match written {
                    ScalarStyle::DoubleQuoted => Style::Escaped,
                    ScalarStyle::SingleQuoted => Style::Quoted,
                    ScalarStyle::Plain if !is_text => Style::Plain,
                    _ => Style::Block,
                };
                if matches!(written, ScalarStyle::Literal | ScalarStyle::Folded) {
                    self.block =
                        Some(Block { key: self.last_key(), text: text.to_string(), span: span.clone() });
                }
                let scalar = Scalar { text: text.into_owned(), style };
                self.add(span, Kind::Scalar(scalar), anchor);
            }
            Event::SequenceStart(_, anchor, _) => self.begin(span, Kind::List(Vec::new()), anchor),
            Event::MappingStart(_, anchor, _) => self.begin(span, Kind::Object(Vec::new()), anchor),
            Event::SequenceEnd | Event::MappingEnd => self.end(&span)?,
            Event::Alias(anchor) => {
                let aliased = self.anchors.get(&anchor).copied();
                let Some(id) = aliased.filter(|id| self.open.iter().all(|open| open.id != *id)) else {
                    return Err(NotYaml::new(span.start, "an alias for what it stands in"));
                };
                let id = self.with_place(id, span);
                self.put(id);
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, span: Range<usize>, kind: Kind, anchor: usize) -> Id {
        let id = self.tree.add(span, kind);
        if anchor > 0 {
            self.anchors.insert(anchor, id);
        }
        self.put(id);
        id
    }

    /// The key whose value comes next, where the file is in an object.
    fn last_key(&self) -> Option<String> {
        let children = &self.open.last()?.children;
        let key = children.last().filter(|_| children.len() % 2 == 1)?;
        self.tree.text(*key).map(str::to_owned)
    }

    /// Puts a node where the file is at.
    fn put(&mut self, id: Id) {
        match self.open.last_mut() {
            Some(open) => open.children.push(id),
            None => self.tree.roots.push(id),
        }
    }

    /// The node of an alias: short scalars are kept for each place, so that an error is told where it is; what
    /// is long or has nodes of its own is told where it is written.
    fn with_place(&mut self, id: Id, span: Range<usize>) -> Id {
        match self.tree.scalar(id) {
            Some(scalar) if scalar.text.len() <= MAX_REPEATED_BYTES => {
                let scalar = Scalar { text: scalar.text.clone(), style: scalar.style };
                self.tree.add(span, Kind::Scalar(scalar))
            }
            _ => id,
        }
    }

    fn begin(&mut self, span: Range<usize>, kind: Kind, anchor: usize) {
        let id = self.add(span, kind, anchor);
        self.open.push(Open { id, children: Vec::new() });
    }

    fn end(&mut self, end: &Range<usize>) -> Result<(), NotYaml> {
        let Some(Open { id, children }) = self.open.pop() else { return Ok(()) };
        // A block has no sign for its end, which is told after blanks and comments.
        let last = children.last().map(|id| self.tree.span(*id).end);
        let entries = children.chunks_exact(2);
        let entries = entries.filter_map(|pair| Some(Entry { key: *pair.first()?, value: *pair.get(1)? }));
        let entries = self.with_merged(&entries.collect::<Vec<_>>(), end.start)?;
        if let Some(node) = self.tree.node_mut(id) {
            let end = if end.is_empty() { last.unwrap_or(end.end) } else { end.end };
            node.span.end = end.max(node.span.end);
            match &mut node.kind {
                Kind::List(items) => *items = children,
                Kind::Object(fields) => *fields = entries,
                Kind::Scalar(_) => {}
            }
        }
        Ok(())
    }

    /// The entries with those of the mappings that stand under `<<` and have no entry of their own here.
    fn with_merged(&mut self, entries: &[Entry], at: usize) -> Result<Vec<Entry>, NotYaml> {
        let is_merge = |entry: &&Entry| {
            let key = self.tree.scalar(entry.key);
            key.is_some_and(|key| key.style == Style::Plain && key.text == "<<")
        };
        let (merges, own): (Vec<&Entry>, Vec<&Entry>) = entries.iter().partition(is_merge);
        let mut all: Vec<Entry> = own.into_iter().copied().collect();
        for merge in merges {
            let one = [merge.value];
            let items = self.tree.items(merge.value);
            for source in if items.is_empty() { &one } else { items } {
                for entry in self.tree.entries(*source) {
                    self.merged += 1;
                    if self.merged > MAX_MERGED {
                        return Err(NotYaml::new(at, "too much is merged with <<"));
                    }
                    let key = self.tree.text(entry.key);
                    if all.iter().all(|other| self.tree.text(other.key) != key) {
                        all.push(*entry);
                    }
                }
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_and_key_is_where_it_stands() {
        let text = "a: &x\n  b: [1, 'two']\n  c: |\n    {\n\n# end\nd: *x\ne: {}\n---\nf\n";
        let tree = read(text).unwrap();
        let at = |id| &text[tree.span(id)];
        let root = tree.roots[0];
        let a = tree.entry(root, "a", 0).unwrap();
        assert_eq!((at(a.key), at(a.value)), ("a", "b: [1, 'two']\n  c: |\n    {\n\n"));
        assert_eq!(at(tree.get(a.value, "b").unwrap()), "[1, 'two']");
        assert_eq!(tree.get(root, "d"), Some(a.value));
        assert_eq!(at(tree.get(root, "e").unwrap()), "{}");
        assert_eq!(tree.text(tree.roots[1]), Some("f"));
    }

    #[test]
    fn merged_entries_are_those_that_are_not_written() {
        let tree = read("a: &a {x: 1, y: 2}\nb: &b {y: 3, z: 4}\nc:\n  <<: [*a, *b]\n  x: 5\n").unwrap();
        let c = tree.get(tree.roots[0], "c").unwrap();
        for (key, value) in [("x", "5"), ("y", "2"), ("z", "4")] {
            assert_eq!(tree.text_at(c, &[key]), Some(value));
        }
        assert_eq!(tree.get(c, "<<"), None);
    }

    #[test]
    fn what_never_ends_is_no_yaml() {
        assert!(read("a: &a [*a]").unwrap_err().reason.contains("an alias for what it stands in"));
        assert!(read(&"[".repeat(100_000)).is_err());
        let doubled = (1..40).map(|level| format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1));
        assert!(read(&format!("a0: &a0 x\n{}", doubled.collect::<String>())).is_ok());
    }
}
