//! How large the objects are that a site makes: asked once for each site, of an object that is made for that.

use jvmti_bindings::sys::jni::{jclass, jobject, jvalue};
use lucce_vm::{Env, c_string};

use crate::book::Loader;
use crate::counting::Counting;

/// How large an instance is: asked once per site, of an instance made for that.
pub fn ask_once(counting: &Counting, env: Env, site: u32) {
    let found = {
        let mut book = counting.book_mut();
        book.ask_size(site)
    };
    if let Some(found) = found
        && let Some(bytes) = size_of_site(counting, env, site, &found)
    {
        let book = counting.book();
        // On failure the log is full, which is told at the end.
        let _ = counting.log.site_size(&book, site, bytes);
    }
}

/// What the log says of the site: how large each of its objects is. `None`: its cells have the bytes.
pub fn size_at(counting: &Counting, env: Env, site: u32) -> Option<u64> {
    let found = counting.book().sized_at(site)?;
    size_of_site(counting, env, site, &found)
}

/// `loader`: of the class that names `class`.
fn size_of_site(
    counting: &Counting,
    env: Env,
    site: u32,
    (loader, class): &(Loader, String),
) -> Option<u64> {
    if env.has_exception() {
        return None;
    }
    let of = |loader| instance_size(counting, env, loader, class);
    // A loader that is gone has left the class to others.
    let others = || {
        let loaders = counting.book().loaders_of(site);
        loaders.into_iter().find_map(of)
    };
    of(*loader).or_else(others)
}

fn instance_size(counting: &Counting, env: Env, loader: Loader, class: &str) -> Option<u64> {
    let class = find_loaded(counting, env, loader, class)?;
    let size = size_of_new(counting, env, class);
    env.forget(class);
    size
}

/// Of an instance that is made for that.
pub fn size_of_new(counting: &Counting, env: Env, class: jclass) -> Option<u64> {
    let object = counting.coverage.ours(env, || env.allocate(class))?;
    let size = counting.jvmti.object_size(object);
    env.forget(object);
    size
}

/// A class that `loader` has loaded or found elsewhere; runs no Java code.
fn find_loaded(counting: &Counting, env: Env, loader: Loader, class: &str) -> Option<jobject> {
    let loader = counting.loaders.object(env, loader)?;
    if loader.is_null() {
        return env.find_class(&c_string(class));
    }
    let base = env.find_class(c"java/lang/ClassLoader")?;
    let method = env.method(
        base,
        c"findLoadedClass0",
        c"(Ljava/lang/String;)Ljava/lang/Class;",
    );
    env.forget(base);
    let name = counting
        .coverage
        .ours(env, || env.string(&class.replace('/', ".")))?;
    let found = env.call_object(loader, method?, &[jvalue { l: name }]);
    env.forget(name);
    env.forget(loader);
    found
}
