//! A filter's description and configuration, checked before the filter sees them.

use std::collections::BTreeMap;

use crate::types::{Description, Setting, SettingType, Value};

/// Least time between ticks, ms.
const TICK_MS: u32 = 10;

fn is_key(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(allowed)
}

/// What is wrong with a description, if anything.
pub(crate) fn check_description(d: &Description) -> Result<(), String> {
    if !is_key(&d.name) {
        return Err(format!("name {:?}: 1 to 64 of a-z, 0-9, _, -", shortened(&d.name)));
    }
    if d.version.is_empty() || d.version.len() > 64 {
        return Err(format!("version {:?}: 1 to 64 bytes", shortened(&d.version)));
    }
    if (1..TICK_MS).contains(&d.tick_every_ms) {
        return Err(format!("tick-every {} ms: 0, or at least {TICK_MS}", d.tick_every_ms));
    }
    if d.settings.len() > 100 {
        return Err(format!("{} settings: at most 100", d.settings.len()));
    }
    for (at, setting) in d.settings.iter().enumerate() {
        if !is_key(&setting.key) {
            return Err(format!("setting {:?}: 1 to 64 of a-z, 0-9, _, -", shortened(&setting.key)));
        }
        if d.settings[..at].iter().any(|other| other.key == setting.key) {
            return Err(format!("setting {:?} twice", setting.key));
        }
        if let Some(default) = &setting.default {
            check_value(setting, default.clone()).map_err(|error| format!("the default of {error}"))?;
        }
    }
    Ok(())
}

/// At most 80 bytes of a text.
fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(80)]
}

fn check_value(setting: &Setting, value: Value) -> Result<Value, String> {
    let key = &setting.key;
    let value = match (setting.setting_type, value) {
        (SettingType::Number, Value::Integer(v)) => Value::Number(v as f64),
        (SettingType::Flag, v @ Value::Flag(_))
        | (SettingType::Integer, v @ Value::Integer(_))
        | (SettingType::Number, v @ Value::Number(_))
        | (SettingType::Text, v @ Value::Text(_)) => v,
        (wanted, given) => {
            let wanted = match wanted {
                SettingType::Flag => "flag (true or false)",
                SettingType::Integer => "whole number",
                SettingType::Number => "number",
                SettingType::Text => "text",
            };
            return Err(format!("{key}: a {wanted} is wanted, this is a {}", given.type_name()));
        }
    };
    let number = match &value {
        Value::Integer(v) => Some(*v as f64),
        Value::Number(v) => Some(*v),
        _ => None,
    };
    if let Some(number) = number {
        if !number.is_finite() {
            return Err(format!("{key}: {number} is not a finite number"));
        }
        if setting.minimum.is_some_and(|least| number < least) {
            return Err(format!("{key}: {number} is less than {}", setting.minimum.unwrap_or_default()));
        }
        if setting.maximum.is_some_and(|most| number > most) {
            return Err(format!("{key}: {number} is more than {}", setting.maximum.unwrap_or_default()));
        }
    }
    if let Value::Text(text) = &value
        && !setting.choices.is_empty()
        && !setting.choices.contains(text)
    {
        return Err(format!("{key}: {text:?} is none of {}", setting.choices.join(", ")));
    }
    Ok(value)
}

/// The configuration that a filter sees: the operator's values, else the defaults.
pub(crate) fn resolve(settings: &[Setting], given: &[(String, Value)]) -> Result<BTreeMap<String, Value>, String> {
    let mut resolved = BTreeMap::new();
    for (key, value) in given {
        let Some(setting) = settings.iter().find(|setting| setting.key == *key) else {
            let known: Vec<_> = settings.iter().map(|setting| setting.key.as_str()).collect();
            let known =
                if known.is_empty() { "it has no settings".to_owned() } else { format!("it has {}", known.join(", ")) };
            return Err(format!("{key} is no setting of this filter: {known}"));
        };
        resolved.insert(key.clone(), check_value(setting, value.clone())?);
    }
    for setting in settings {
        if resolved.contains_key(&setting.key) {
            continue;
        }
        match &setting.default {
            Some(default) => {
                resolved.insert(setting.key.clone(), check_value(setting, default.clone())?);
            }
            None if setting.required => return Err(format!("{} must be given: {}", setting.key, setting.summary)),
            None => {}
        }
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, setting_type: SettingType) -> Setting {
        Setting {
            key: key.to_owned(),
            setting_type,
            summary: "what it does".to_owned(),
            default: None,
            required: false,
            minimum: Some(1.0),
            maximum: Some(10.0),
            choices: vec!["a".to_owned(), "b".to_owned()],
        }
    }

    #[test]
    fn each_error_names_the_setting_and_what_is_wanted() {
        let mut required = setting("limit", SettingType::Integer);
        required.required = true;
        let settings = [required, setting("mode", SettingType::Text), setting("share", SettingType::Number)];
        let error = |given: &[(&str, Value)]| {
            let given: Vec<_> = given.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
            resolve(&settings, &given).unwrap_err()
        };
        let one = ("limit", Value::Integer(1));
        assert_eq!(error(&[]), "limit must be given: what it does");
        assert_eq!(
            error(&[("limt", Value::Integer(1))]),
            "limt is no setting of this filter: it has limit, mode, share"
        );
        assert_eq!(error(&[("limit", Value::Text("x".into()))]), "limit: a whole number is wanted, this is a text");
        assert_eq!(error(&[("limit", Value::Integer(0))]), "limit: 0 is less than 1");
        assert_eq!(error(&[one.clone(), ("share", Value::Integer(11))]), "share: 11 is more than 10");
        assert_eq!(error(&[one.clone(), ("share", Value::Number(f64::NAN))]), "share: NaN is not a finite number");
        assert_eq!(error(&[one.clone(), ("mode", Value::Text("c".into()))]), "mode: \"c\" is none of a, b");
        let good = resolve(&settings, &[("limit".into(), Value::Integer(2)), ("share".into(), Value::Integer(3))]);
        let good = good.unwrap();
        assert_eq!((good.get("share"), good.get("mode")), (Some(&Value::Number(3.0)), None));
    }
}
