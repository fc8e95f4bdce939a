//! The ways through a schema: what may stand where, and which parts of it a configuration passes.

use serde_json::Value;

/// A schema of which definitions are known, as this crate makes it.
#[derive(Debug)]
pub struct Terrain {
    root: Value,
}

/// A part of the schema, and where it stands in it.
#[derive(Clone, Debug)]
pub struct Point<'a> {
    /// The part.
    pub schema: &'a Value,
    /// Where, as a JSON pointer.
    pub at: String,
}

impl<'a> Point<'a> {
    fn within(&self, key: &str, schema: &'a Value) -> Self {
        Self { schema, at: format!("{}/{key}", self.at) }
    }

    /// The name of the definition that this is; empty where it is none.
    pub fn definition(&self) -> &str {
        self.at.strip_prefix("/$defs/").filter(|name| !name.contains('/')).unwrap_or_default()
    }

    /// A bound such as `maxItems`.
    pub fn bound(&self, key: &str) -> Option<usize> {
        self.schema.get(key).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok())
    }

    /// Whether an object must have this key.
    pub fn requires(&self, key: &str) -> bool {
        let required = self.schema.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|name| name == key))
    }
}

impl Terrain {
    /// The terrain of a schema.
    pub const fn new(root: Value) -> Self {
        Self { root }
    }

    /// Where a configuration begins.
    pub fn start(&self) -> Point<'_> {
        Point { schema: &self.root, at: String::new() }
    }

    /// All definitions.
    pub fn definitions(&self) -> Vec<Point<'_>> {
        let names = self.root.get("$defs").and_then(Value::as_object);
        let point = |(name, schema)| Point { schema, at: format!("/$defs/{name}") };
        names.into_iter().flatten().map(point).collect()
    }

    /// The point itself, or the definition that it refers to.
    pub fn resolve<'a>(&'a self, point: Point<'a>) -> Point<'a> {
        let target =
            point.schema.get("$ref").and_then(Value::as_str).and_then(|target| target.strip_prefix('#'));
        match target.and_then(|at| Some((at, self.root.pointer(at)?))) {
            Some((at, schema)) => self.resolve(Point { schema, at: at.to_owned() }),
            None => point,
        }
    }

    /// The forms of which one must fit.
    pub fn forms<'a>(point: &Point<'a>) -> Vec<Point<'a>> {
        let forms = |key: &str| {
            let forms = point.schema.get(key).and_then(Value::as_array).into_iter().flatten().enumerate();
            forms.map(|(index, form)| point.within(&format!("{key}/{index}"), form)).collect::<Vec<_>>()
        };
        [forms("oneOf"), forms("anyOf")].concat()
    }

    /// The properties of an object, by name.
    pub fn properties<'a>(point: &Point<'a>) -> Vec<(&'a str, Point<'a>)> {
        let properties = point.schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        properties
            .map(|(name, inner)| (name.as_str(), point.within(&format!("properties/{name}"), inner)))
            .collect()
    }

    /// What stands in a list, or under any key of a map.
    pub fn inner<'a>(point: &Point<'a>, key: &str) -> Option<Point<'a>> {
        point.schema.get(key).filter(|inner| inner.is_object()).map(|inner| point.within(key, inner))
    }

    /// What may stand under a key of this, whatever form it has.
    pub fn under<'a>(&'a self, point: Point<'a>, key: &str) -> Option<Point<'a>> {
        let point = self.resolve(point);
        let named =
            Self::properties(&point).into_iter().find(|(name, _)| *name == key).map(|(_, inner)| inner);
        named
            .or_else(|| Self::inner(&point, "additionalProperties"))
            .or_else(|| Self::forms(&point).into_iter().find_map(|form| self.under(form, key)))
    }

    /// Whether a value has the type of this, and the keys that it must have.
    fn fits(&self, point: Point<'_>, value: &Value) -> bool {
        let point = self.resolve(point);
        if let Some(expected) = point.schema.get("const") {
            return value == expected;
        }
        let forms = Self::forms(&point);
        if !forms.is_empty() {
            return forms.into_iter().any(|form| self.fits(form, value));
        }
        match point.schema.get("type").and_then(Value::as_str) {
            Some("object") => value.as_object().is_some_and(|object| {
                let required = point.schema.get("required").and_then(Value::as_array);
                required
                    .into_iter()
                    .flatten()
                    .all(|key| key.as_str().is_some_and(|key| object.contains_key(key)))
            }),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            _ => value.is_number(),
        }
    }

    /// Every key and form that a valid configuration passes, with where it stands in that.
    pub fn passed(&self, point: Point<'_>, value: &Value, way: &str, visit: &mut impl FnMut(&str, &str)) {
        visit(way, &point.at);
        let point = self.resolve(point);
        for form in Self::forms(&point) {
            if self.fits(form.clone(), value) {
                self.passed(form, value, way, visit);
            }
        }
        match value {
            Value::Object(object) => {
                for (key, inner) in object {
                    // Of this form alone: the others have been asked.
                    let named = Self::properties(&point).into_iter().find(|(name, _)| name == key);
                    let point =
                        named.map(|(_, point)| point).or_else(|| Self::inner(&point, "additionalProperties"));
                    if let Some(point) = point {
                        self.passed(point, inner, &format!("{way}/{}", escaped(key)), visit);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if let Some(point) = Self::inner(&point, "items") {
                        self.passed(point, item, &format!("{way}/{index}"), visit);
                    }
                }
            }
            _ => {}
        }
    }

    /// Every key and form that there is.
    pub fn all(&self) -> Vec<String> {
        let mut found = Vec::new();
        for point in self.definitions().into_iter().chain([self.start()]) {
            Self::collect(&point, &mut found);
        }
        found
    }

    fn collect(point: &Point<'_>, found: &mut Vec<String>) {
        let properties = Self::properties(point).into_iter().map(|(_, inner)| inner);
        for inner in properties.chain(Self::forms(point)) {
            found.push(inner.at.clone());
            Self::collect(&inner, found);
        }
        for inner in ["items", "additionalProperties"].iter().filter_map(|key| Self::inner(point, key)) {
            Self::collect(&inner, found);
        }
    }
}

/// A key as a JSON pointer has it (RFC 6901).
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
