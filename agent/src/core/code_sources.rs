//! Where classes were loaded from: the location of their protection domain's code source.
//!
//! Only fields of objects are read, so no code of the program runs.

use std::ffi::CStr;
use std::sync::OnceLock;

use jvmti_bindings::sys::jni::{jclass, jobject};
use lucce_jvmti::{FieldId, JniEnvironment};

use crate::core::AgentCore;
use crate::registry::ClassLoaderId;

/// A field of a class of the JDK that holds an object.
struct ObjectField {
    name: &'static CStr,
    descriptor: &'static CStr,
    /// Unset until the field is first read; `None`: the class does not have it.
    id: OnceLock<Option<FieldId>>,
}

impl ObjectField {
    const fn new(name: &'static CStr, descriptor: &'static CStr) -> ObjectField {
        ObjectField {
            name,
            descriptor,
            id: OnceLock::new(),
        }
    }
}

/// The first release in which [`DOMAIN`] is a field of Java.
const DOMAIN_IS_FIELD: u32 = 25;
/// `java.lang.Class.protectionDomain`
static DOMAIN: ObjectField =
    ObjectField::new(c"protectionDomain", c"Ljava/security/ProtectionDomain;");
/// `java.security.ProtectionDomain.codesource`
static CODE_SOURCE: ObjectField = ObjectField::new(c"codesource", c"Ljava/security/CodeSource;");
/// `java.security.CodeSource.location`
static LOCATION: ObjectField = ObjectField::new(c"location", c"Ljava/net/URL;");
/// `java.net.URL.protocol`
static PROTOCOL: ObjectField = ObjectField::new(c"protocol", c"Ljava/lang/String;");
/// `java.net.URL.file`
static FILE: ObjectField = ObjectField::new(c"file", c"Ljava/lang/String;");

/// Longest location that is recorded, in UTF-16 units.
const MAX_LOCATION: usize = 4096;

/// Records the code source of the newest class of this name (`a/b/C`) in a loader. Does nothing if `domain` is null, as for
/// classes of the boot loader, or if the class is not registered.
pub fn record_code_source(
    core: &AgentCore,
    env: JniEnvironment,
    loader: ClassLoaderId,
    name: &str,
    domain: jobject,
) {
    if domain.is_null() {
        return;
    }
    let class = core.registry().find_class_id(loader, name);
    if let Some(class) = class
        && let Some(location) = read_location(env, domain)
    {
        core.registry_mut().set_code_source(class, &location);
    }
}

/// The protection domain of a loaded class; null: it has none, or the VM does not give it. `release`: of the JDK. Runs no Java
/// code.
pub fn domain_of_class(env: JniEnvironment, release: u32, class: jclass) -> jobject {
    if release >= DOMAIN_IS_FIELD {
        return read_field(env, class, &DOMAIN).unwrap_or(std::ptr::null_mut());
    }
    // A native method reads the VM's own field.
    let class_of_classes = env.class_of(class);
    let method = env.method_id(
        class_of_classes,
        c"getProtectionDomain0",
        c"()Ljava/security/ProtectionDomain;",
    );
    env.delete_local(class_of_classes);
    let domain = method.and_then(|method| env.call_object(class, method, &[]));
    domain.unwrap_or(std::ptr::null_mut())
}

/// The location's text: `file:/srv/app/classes/`. `None`: the domain has no location.
fn read_location(env: JniEnvironment, domain: jobject) -> Option<String> {
    let source = read_field(env, domain, &CODE_SOURCE)?;
    let location = read_field(env, source, &LOCATION);
    env.delete_local(source);
    let location = location?;
    let protocol = read_text(env, location, &PROTOCOL);
    let file = read_text(env, location, &FILE);
    env.delete_local(location);
    Some(format!("{}:{}", protocol?, file?))
}

fn read_text(env: JniEnvironment, object: jobject, field: &ObjectField) -> Option<String> {
    let text = read_field(env, object, field)?;
    let read = env.read_string(text, MAX_LOCATION);
    env.delete_local(text);
    Some(read)
}

/// A local reference to a field's object. `None`: the field is null, or the class does not have it.
fn read_field(env: JniEnvironment, object: jobject, field: &ObjectField) -> Option<jobject> {
    let id = match field.id.get() {
        Some(id) => *id,
        None => {
            let class = env.class_of(object);
            let id = env.field_id(class, field.name, field.descriptor);
            env.delete_local(class);
            *field.id.get_or_init(|| id.map(FieldId::new))
        }
    };
    let value = env.get_object(object, id?.as_raw());
    (!value.is_null()).then_some(value)
}
