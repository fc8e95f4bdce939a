//! JSON as a tree with places. `serde_json` reads it; a raw value is a piece of the text, so that its address
//! says where it stands.

use core::fmt;
use core::ops::Range;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::tree::{Entry, Id, Kind, Scalar, Style, Tree};

/// As deep as the filter reads, and a little more, so that it is the filter that refuses.
const MAX_DEPTH: usize = 130;

/// The tree of a text; `None` where it is no JSON, or is deeper than the filter reads.
pub(crate) fn read(text: &str) -> Option<Tree> {
    let mut reader = Reader { text, tree: Tree::default() };
    let root = reader.add(serde_json::from_str(text).ok()?, 0)?;
    reader.tree.roots.push(root);
    Some(reader.tree)
}

struct Reader<'a> {
    text: &'a str,
    tree: Tree,
}

impl Reader<'_> {
    fn add(&mut self, raw: &RawValue, depth: usize) -> Option<Id> {
        if depth > MAX_DEPTH {
            return None;
        }
        let text = raw.get();
        let span = self.span(text);
        let placeholder = Scalar { text: String::new(), style: Style::Plain };
        let id = self.tree.add(span, Kind::Scalar(placeholder));
        let kind = match text.as_bytes().first()? {
            b'{' => {
                let entries: Entries<'_> = serde_json::from_str(text).ok()?;
                let add = |(key, value)| {
                    Some(Entry { key: self.add(key, depth + 1)?, value: self.add(value, depth + 1)? })
                };
                Kind::Object(entries.0.into_iter().map(add).collect::<Option<_>>()?)
            }
            b'[' => {
                let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
                Kind::List(items.into_iter().map(|item| self.add(item, depth + 1)).collect::<Option<_>>()?)
            }
            b'"' => Kind::Scalar(Scalar { text: serde_json::from_str(text).ok()?, style: Style::Escaped }),
            _ => Kind::Scalar(Scalar { text: text.to_owned(), style: Style::Plain }),
        };
        self.tree.node_mut(id)?.kind = kind;
        Some(id)
    }

    fn span(&self, part: &str) -> Range<usize> {
        let start = part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        start..start + part.len()
    }
}

/// The entries of an object, keys that come twice included.
struct Entries<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_and_key_is_where_it_stands() {
        let text = " {\"a\" : [1.50, \"x\\n\\\"é\"], \"a\": {}, \"\\u0062\": null}\n";
        let tree = read(text).unwrap();
        let root = tree.roots[0];
        let at = |id| &text[tree.span(id)];
        assert_eq!(at(root), text.trim());
        let items = tree.items(tree.get(root, "a").unwrap());
        assert_eq!(items.iter().map(|id| at(*id)).collect::<Vec<_>>(), ["1.50", "\"x\\n\\\"é\""]);
        assert_eq!(tree.text(items[1]), Some("x\n\"é"));
        let second = tree.entry(root, "a", 1).unwrap();
        assert_eq!((at(second.key), at(second.value)), ("\"a\"", "{}"));
        assert_eq!(at(tree.entry(root, "b", 0).unwrap().key), "\"\\u0062\"");
    }

    #[test]
    fn what_is_no_json_and_what_is_too_deep_has_no_tree() {
        for text in ["", "{", "{}{}", "[1,]", "a: b", &format!("{}{}", "[".repeat(200), "]".repeat(200))] {
            assert!(read(text).is_none(), "{text}");
        }
        assert!(read(&format!("{}{}", "[".repeat(127), "]".repeat(127))).is_some());
    }
}
