//! Templates of paths, as `/users/{id}/orders`.

/// A path some of whose segments may be anything but empty. What is not a variable is compared to the letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    /// What stands before the first variable.
    before: Vec<u8>,
    /// What stands between the slashes; `None` is a variable.
    segments: Vec<Option<String>>,
}

/// Why a text is no template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// It does not begin with a slash.
    NoSlash,
    /// A brace that neither begins nor ends a variable of a whole segment.
    PartOfASegment,
    /// A variable whose name is not a letter or underscore, and letters, digits and underscores.
    BadName,
    /// Two variables of one name.
    RepeatedName,
    /// There is none.
    NoVariable,
}

impl Template {
    /// Whether a normalised path fits.
    pub fn holds(&self, path: &[u8]) -> bool {
        // Most paths differ before the first variable, and are not looked at in segments.
        if !path.starts_with(&self.before) {
            return false;
        }
        let Some(path) = path.strip_prefix(b"/") else { return false };
        let mut segments = path.split(|byte| *byte == b'/');
        let fits = |wanted: &Option<String>| {
            segments.next().is_some_and(|segment| match wanted {
                Some(literal) => literal.as_bytes() == segment,
                None => !segment.is_empty(),
            })
        };
        self.segments.iter().all(fits) && segments.next().is_none()
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl core::str::FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let path = text.strip_prefix('/').ok_or(TemplateError::NoSlash)?;
        let mut names = Vec::new();
        let mut segments = Vec::new();
        for segment in path.split('/') {
            let Some(name) = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
                if segment.contains(['{', '}']) {
                    return Err(TemplateError::PartOfASegment);
                }
                segments.push(Some(segment.to_owned()));
                continue;
            };
            if name.contains(['{', '}']) {
                return Err(TemplateError::PartOfASegment);
            }
            let is_letter = |char: char| char.is_ascii_alphabetic() || char == '_';
            if !name.starts_with(is_letter)
                || !name.chars().all(|char| is_letter(char) || char.is_ascii_digit())
            {
                return Err(TemplateError::BadName);
            }
            if names.contains(&name) {
                return Err(TemplateError::RepeatedName);
            }
            names.push(name);
            segments.push(None);
        }
        if names.is_empty() {
            return Err(TemplateError::NoVariable);
        }
        let before = text.split('{').next().unwrap_or_default().as_bytes().to_vec();
        Ok(Self { text: text.to_owned(), before, segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(template: &str, path: &str) -> bool {
        template.parse::<Template>().unwrap().holds(path.as_bytes())
    }

    #[test]
    fn a_variable_takes_one_segment_that_is_not_empty() {
        assert!(holds("/users/{id}", "/users/42"));
        assert!(holds("/users/{id}/orders", "/users/42/orders"));
        assert!(holds("/{a}/{b}", "/x/y"));
        assert!(holds("/users/{id}/", "/users/42/"));
        for path in
            ["/users", "/users/", "/users/42/", "/users/42/x", "/user/42", "/Users/42", "users/42", "", "*"]
        {
            assert!(!holds("/users/{id}", path), "{path:?}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused_by_its_kind() {
        let error = |text: &str| text.parse::<Template>().unwrap_err();
        assert_eq!(error("users/{id}"), TemplateError::NoSlash);
        for text in ["/a{id}", "/{id}b", "/{id", "/id}", "/{a}{b}", "/{{a}}"] {
            assert_eq!(error(text), TemplateError::PartOfASegment, "{text:?}");
        }
        for text in ["/{}", "/{1a}", "/{a-b}", "/{*}", "/{a b}"] {
            assert_eq!(error(text), TemplateError::BadName, "{text:?}");
        }
        assert_eq!(error("/{a}/{a}"), TemplateError::RepeatedName);
        assert_eq!(error("/users"), TemplateError::NoVariable);
    }
}
