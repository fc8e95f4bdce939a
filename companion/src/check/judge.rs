//! The judgement of one file: which configurations stand in it, and all that is wrong with them.

use core::ops::Range;
use std::collections::HashSet;

use plugin_config::{Config, Error, MAX_BYTES, Problem, Type};

use super::find::{self, Found};
use super::finding::{self, Finding};
use super::origin::Origin;
use super::tree::{Id, Kind, Tree};
use super::yaml::NotYaml;
use super::{istio, json, lines, yaml};

/// What is to be said of a file.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    pub(crate) configurations: usize,
    pub(crate) valid: Vec<Config>,
    pub(crate) findings: Vec<Finding>,
    /// Errors that are not among the findings.
    pub(crate) left_out: usize,
}

/// The type of the message in which Envoy hands over a text as it is.
const STRING_VALUE: &str = "/google.protobuf.StringValue";

const AS_TEXT: &str =
    "use \"@type\": type.googleapis.com/google.protobuf.StringValue, with the JSON as a text under \"value\"";

const QUOTES: &str = "put it in quotes; in YAML a bare on, off, yes, no, true or false is no text";

/// Judges a text, of which JSON, YAML and what stands in them is found out; `None`: there is nothing of ours.
pub(crate) fn text(text: &str) -> Option<Judgement> {
    let mut judgement = any(text)?;
    let end = lines::last_sign(text, text.len());
    for finding in &mut judgement.findings {
        // What is missing at the end is shown at the last of what is there.
        if finding.span.start >= end.end {
            finding.span = end.clone();
        }
    }
    judgement.findings.sort_by_key(|finding| finding.span.start);
    Some(judgement)
}

fn any(text: &str) -> Option<Judgement> {
    let mut judgement = Judgement::default();
    if let Some(tree) = json::read(text) {
        if judgement.document(text, &tree) {
            return Some(judgement);
        }
        if find::is_around(&tree) && find::is_bare(&tree).is_none() {
            return None;
        }
    } else {
        let tree = yaml::read(text);
        if let Ok(tree) = &tree
            && judgement.document(text, tree)
        {
            return Some(judgement);
        }
        if is_yaml(text) {
            return judgement.yaml(tree);
        }
    }
    judgement.plain(text.as_bytes(), text, &Origin::Piece(0), &(0..text.len()));
    Some(judgement)
}

/// Judges what is no text, from the byte `valid` on: in the filter's words where it has some for the whole.
pub(crate) fn bytes(bytes: &[u8], valid: usize) -> Judgement {
    let told = plugin_config::parse(bytes).err().and_then(|errors| errors.iter().next().cloned());
    let finding = match told.filter(|error| !matches!(error.problem, Problem::NotJson { .. })) {
        Some(error) => Finding::of_whole(&error, 0..0),
        None => Finding::of_file("not UTF-8", "save it as UTF-8", valid..valid),
    };
    Judgement { configurations: 1, findings: vec![finding], ..Judgement::default() }
}

impl Judgement {
    /// How many there are in those configurations that are valid.
    pub(crate) fn policies(&self) -> usize {
        self.valid.iter().map(|config| config.policies.len()).sum()
    }

    /// Judges all configurations in a document of Envoy's or Kubernetes'; false: there is none.
    fn document(&mut self, text: &str, tree: &Tree) -> bool {
        let found = find::all(tree);
        for found in &found {
            match *found {
                Found::Message(id) => self.message(text, tree, id),
                Found::Mapping(id) => self.mapping(tree, id),
                Found::Misspelt(key) => {
                    let problem =
                        format!("the key is not spelled {:?}, and Istio hands over nothing", find::ISTIO_KEY);
                    let remedy = format!("did you mean {:?}?", find::ISTIO_KEY);
                    self.findings.push(Finding::of_file(problem, &remedy, tree.span(key)));
                }
                Found::Missing(id) => self.plain(&[], "", &Origin::Piece(0), &tree.span(id)),
            }
        }
        if !found.is_empty() {
            self.repeated_keys(tree, &found);
        }
        !found.is_empty()
    }

    /// Judges what is YAML and has no configuration in one of its places.
    fn yaml(mut self, tree: Result<Tree, NotYaml>) -> Option<Self> {
        let finding = match tree {
            Ok(tree) => {
                let span = tree.span(find::is_bare(&tree)?);
                let remedy = "write it as JSON; only in resources of Istio and Envoy Gateway it may be YAML";
                Finding::of_file("a configuration in YAML, and not in JSON", remedy, span)
            }
            Err(NotYaml { at, reason, ended }) => {
                let remedy = "mend the YAML; indent with blanks, and quote texts that begin with a sign";
                let remedy = ended.map_or_else(|| remedy.to_owned(), |ended| ended.to_string());
                Finding::of_file(format!("not YAML: {reason}"), &remedy, at..at)
            }
        };
        self.configurations = 1;
        self.findings.push(finding);
        Some(self)
    }

    /// Judges Envoy's `configuration`.
    fn message(&mut self, file: &str, tree: &Tree, id: Id) {
        let kind = tree.get(id, "@type");
        let value = tree.get(id, "value");
        let wrong = |at: Id, problem: String| Finding::of_file(problem, AS_TEXT, tree.span(at));
        let finding = match (kind.and_then(|kind| tree.text(kind)), kind, value) {
            (Some(name), _, Some(value)) if name.ends_with(STRING_VALUE) => {
                if let Some(scalar) = tree.scalar(value) {
                    let span = tree.span(value);
                    let origin = Origin::new(&scalar.text, file, &span, scalar.style);
                    return self.plain(scalar.text.as_bytes(), &scalar.text, &origin, &span);
                }
                wrong(value, "the configuration is not a text".to_owned())
            }
            (Some(name), _, None) if name.ends_with(STRING_VALUE) => {
                wrong(id, "the configuration has no \"value\"".to_owned())
            }
            (Some(name), Some(kind), _) => {
                let name = name.rsplit('/').next().unwrap_or_default();
                let name: String = name.chars().take(plugin_config::MAX_SHOWN_CHARS).collect();
                let arrives = "arrives at the filter as the bytes of a message, and not as JSON";
                wrong(kind, format!("{name:?} {arrives}"))
            }
            _ => wrong(id, "the configuration is not a message that Envoy knows".to_owned()),
        };
        self.configurations += 1;
        self.findings.push(finding);
    }

    /// Judges a configuration that is a text of JSON, and stands in the file where `origin` says.
    fn plain(&mut self, bytes: &[u8], text: &str, origin: &Origin, whole: &Range<usize>) {
        let is_file = matches!(origin, Origin::Piece(0));
        let tree = json::read(text);
        let root = tree.as_ref().and_then(|tree| Some((tree, *tree.roots.first()?)));
        let Some((tree, root)) = root else {
            self.configurations += 1;
            if let Err(errors) = plugin_config::parse(bytes) {
                let finding = |error| syntax(error, text, origin, whole, is_file);
                self.findings.extend(errors.iter().map(finding));
            }
            return;
        };
        self.located(bytes, tree, root, |span| origin.span(&span));
    }

    /// Judges a configuration that Istio makes JSON of.
    fn mapping(&mut self, tree: &Tree, id: Id) {
        let before = self.findings.len();
        self.located(istio::to_json(tree, id, MAX_BYTES).as_bytes(), tree, id, |span| span);
        let not_text = Problem::WrongType(Type::Text).to_string();
        for finding in self.findings.iter_mut().skip(before) {
            let is_flag = matches!(finding.value.as_deref(), Some("true" | "false"));
            if is_flag && finding.problem == not_text {
                // What was a text to its writer is none to YAML.
                QUOTES.clone_into(&mut finding.remedy);
            }
        }
    }

    /// Judges a configuration, which is the tree from `root` on.
    fn located(&mut self, bytes: &[u8], tree: &Tree, root: Id, place: impl Fn(Range<usize>) -> Range<usize>) {
        self.configurations += 1;
        match plugin_config::check(bytes) {
            Ok((config, warnings)) => {
                self.findings.extend(finding::all(warnings.iter().map(Into::into), tree, root, place));
                self.valid.push(config);
            }
            Err(errors) => {
                self.findings.extend(finding::all(errors.iter().map(Into::into), tree, root, place));
                self.left_out += errors.left_out();
            }
        }
    }

    /// Reports keys that come twice around the configurations: Envoy keeps one of them in silence.
    fn repeated_keys(&mut self, tree: &Tree, found: &[Found]) {
        let mapping =
            |found: &Found| if let Found::Mapping(id) = found { Some(tree.span(*id)) } else { None };
        let judged: Vec<Range<usize>> = found.iter().filter_map(mapping).collect();
        for id in tree.ids() {
            let Some(node) = tree.node(id) else { continue };
            let Kind::Object(entries) = &node.kind else { continue };
            if judged.iter().any(|judged| judged.start <= node.span.start && node.span.end <= judged.end) {
                continue;
            }
            let mut seen = HashSet::new();
            for entry in entries {
                if tree.text(entry.key).is_some_and(|key| !seen.insert(key)) {
                    let span = tree.span(entry.key);
                    self.findings.push(Finding::of_file("the key comes twice", "keep one of them", span));
                }
            }
        }
    }
}

/// An error that keeps a text from being read at all.
fn syntax(error: &Error, text: &str, origin: &Origin, whole: &Range<usize>, is_file: bool) -> Finding {
    let Problem::NotJson { line, column, reason } = &error.problem else {
        return Finding::of_whole(error, whole.clone());
    };
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let told = start + column.saturating_sub(1);
    let last = lines::last_sign(text, text.len());
    let is_comma = reason.starts_with("trailing comma");
    let sign = match told < last.end {
        // What is told is the sign behind it.
        true if is_comma => lines::last_sign(text, told),
        true => lines::sign(text, told),
        false => last,
    };
    let is_as_told = is_file && sign.contains(&told);
    let mut finding = Finding::of_whole(error, origin.span(&sign));
    if is_comma {
        "remove the comma".clone_into(&mut finding.remedy);
    }
    if !is_as_told {
        // The line and column that the parser tells are others.
        finding.problem = format!("not JSON: {reason}");
    }
    finding
}

/// Whether what is not JSON is meant to be YAML: its first line that says something has a key and a colon, or
/// begins a list or a document, and no JSON begins so.
fn is_yaml(text: &str) -> bool {
    let says_nothing = |line: &&str| line.is_empty() || line.starts_with('#');
    let first = text.trim_start_matches('\u{feff}').lines().map(str::trim).find(|line| !says_nothing(line));
    let first = first.unwrap_or_default();
    let key = first.trim_start_matches("- ").split_once(':').map_or("", |(key, _)| key.trim());
    let inner = key.trim_matches(['"', '\'']);
    let is_key = inner == key || key.len() == inner.len() + 2;
    first == "---"
        || first.starts_with("--- ")
        || first.starts_with("%YAML")
        || (is_key && inner.starts_with(|char: char| char.is_ascii_alphabetic() || char == '@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_told_from_json_with_an_error() {
        for text in [
            "# Envoy\n\nadmin:\n  address:\n",
            "---\nname: x",
            "- name: x",
            "companion: { cluster: a }",
            "\"a\": b",
            "--- {}",
        ] {
            assert!(is_yaml(text), "{text}");
        }
        for text in
            ["", "not JSON", "{\"policies\": [}", "{\n  policies: []\n}", "[1: 2]", "\"a: b\"", "{}", ": x"]
        {
            assert!(!is_yaml(text), "{text}");
        }
    }
}
