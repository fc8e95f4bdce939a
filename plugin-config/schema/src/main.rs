//! Prints the JSON Schema, as `make schema` keeps it in the repository.

#[expect(clippy::print_stdout, reason = "what it is for")]
fn main() {
    print!("{}", config_schema::text());
}
