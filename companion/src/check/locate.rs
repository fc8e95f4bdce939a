//! From the path of an error to its place in the file.

use core::ops::Range;

use plugin_config::{Path, Step};

use super::tree::{Entry, Id, Tree};

/// What of the last entry of a path is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// Its key.
    Key,
    /// Its key where it comes again.
    NextKey,
    /// Its value.
    Value,
    /// Both.
    Entry,
}

/// The place that the path leads to from `root` on. Where a key is missing, it is that of the object.
///
/// `earlier` equal keys at the path's end are passed over.
pub(crate) fn span(tree: &Tree, root: Id, path: &Path, aim: Aim, earlier: usize) -> Range<usize> {
    let earlier = match aim {
        Aim::Value => 0,
        Aim::NextKey => earlier + 1,
        Aim::Key | Aim::Entry => earlier,
    };
    let (mut id, mut last) = (root, None);
    let mut steps = path.0.iter().peekable();
    while let Some(step) = steps.next() {
        let earlier = if steps.peek().is_none() { earlier } else { 0 };
        let next = match step {
            Step::Key(key) => tree.entry(id, key, earlier).map(|entry| (entry.value, Some(entry))),
            Step::Index(index) => tree.items(id).get(*index).map(|item| (*item, None)),
        };
        let Some(found) = next else { return tree.span(id) };
        (id, last) = found;
    }
    match (last, aim) {
        (Some(Entry { key, .. }), Aim::Key | Aim::NextKey) => tree.span(key),
        (Some(Entry { key, .. }), Aim::Entry) => {
            let (key, value) = (tree.span(key), tree.span(id));
            // An alias's value stands elsewhere.
            if value.start >= key.end { key.start..value.end } else { key }
        }
        _ => tree.span(id),
    }
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    #[test]
    fn a_path_leads_to_keys_values_and_where_a_key_is_missing() {
        let text = r#"{"policies": [{"name": "a"}, {"x": 1, "x": 2, "x": [3]}]}"#;
        let tree = json::read(text).unwrap();
        let at = |key: Option<&str>, aim, earlier| {
            let mut path = Path(vec![Step::Key("policies".to_owned()), Step::Index(1)]);
            path.0.extend(key.map(|key| Step::Key(key.to_owned())));
            span(&tree, tree.roots[0], &path, aim, earlier)
        };
        assert_eq!(&text[at(Some("x"), Aim::Value, 5)], "1");
        assert_eq!(&text[at(Some("x"), Aim::Entry, 2)], r#""x": [3]"#);
        assert_eq!(at(Some("x"), Aim::Key, 1).start, at(Some("x"), Aim::NextKey, 0).start);
        assert_eq!(at(Some("y"), Aim::Value, 0), at(None, Aim::Value, 0));
        assert_eq!(&text[at(None, Aim::Value, 0)], r#"{"x": 1, "x": 2, "x": [3]}"#);
        assert_eq!(span(&tree, tree.roots[0], &Path::default(), Aim::Key, 0), 0..text.len());
    }
}
