//! The JSON Schema of the plugin configuration, made of types of its written form; and what shows that it and the
//! parser agree: configurations made up at random, and a judge who asks both.
//!
//! Nothing that is shipped is built with this: the schema is published as `plugin-config/schema.json`, which
//! `tidegate schema` prints. What a schema cannot say is in [`judge`].

pub mod asked;
pub mod broken;
pub mod dice;
pub mod fuzzed;
pub mod judge;
pub mod made;
mod numbers;
mod pool;
pub mod spelled;
pub mod terrain;
mod tidy;
pub mod written;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

/// The schema, of the draft of 2020-12.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(tidy::tidy));
    let mut schema = settings.into_generator().into_root_schema_for::<written::Configuration>();
    schema.insert("title".to_owned(), "Configuration of the Tidegate filter".into());
    schema.to_value()
}

/// The same as it is published.
pub fn text() -> String {
    format!("{:#}\n", schema())
}
