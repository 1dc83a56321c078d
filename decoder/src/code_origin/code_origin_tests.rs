//! Origins of classes in the layouts in which programs are started.

use super::*;

/// Facts of a start, and classes with their location and expected origin.
struct Layout {
    name: &'static str,
    program: &'static str,
    main_class: &'static str,
    main_location: &'static str,
    is_merged: bool,
    directory: &'static str,
    classes: &'static [(&'static str, &'static str, CodeOrigin)],
}

use CodeOrigin::{Application, Jdk, Library};

const LAYOUTS: [Layout; 10] = [
    Layout {
        name: "Spring Boot jar",
        program: "/srv/shop.jar",
        main_class: "com.acme.shop.Shop",
        main_location: "jar:nested:/srv/shop.jar/!BOOT-INF/classes/!/",
        is_merged: false,
        directory: "/srv",
        classes: &[
            (
                "com.acme.shop.Shop",
                "jar:nested:/srv/shop.jar/!BOOT-INF/classes/!/",
                Application,
            ),
            (
                "org.other.Plugin",
                "jar:file:/srv/shop.jar!/BOOT-INF/classes!/",
                Application,
            ),
            (
                "org.apache.catalina.Host",
                "jar:nested:/srv/shop.jar/!BOOT-INF/lib/tomcat.jar!/",
                Library,
            ),
            (
                "com.acme.core.Money",
                "jar:nested:/srv/shop.jar/!BOOT-INF/lib/acme-core.jar!/",
                Application,
            ),
            (
                "com.acme.shop.api.Order",
                "jar:nested:/srv/shop.jar/!BOOT-INF/lib/shop-api.jar!/",
                Application,
            ),
            (
                "org.springframework.boot.loader.launch.JarLauncher",
                "file:/srv/shop.jar",
                Library,
            ),
            ("java.sql.Driver", "jrt:/java.sql", Jdk),
        ],
    },
    Layout {
        name: "exploded classes",
        program: "com.acme.Main",
        main_class: "com.acme.Main",
        main_location: "file:/srv/work/target/classes/",
        is_merged: false,
        directory: "/srv/work",
        classes: &[
            (
                "com.acme.Main",
                "file:/srv/work/target/classes/",
                Application,
            ),
            (
                "org.lib.Thing",
                "file:/srv/.m2/repository/org/lib/1/lib-1.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "war in Tomcat",
        program: "org.apache.catalina.startup.Bootstrap",
        main_class: "org.apache.catalina.startup.Bootstrap",
        main_location: "file:/opt/tomcat/bin/bootstrap.jar",
        is_merged: false,
        directory: "/opt/tomcat",
        classes: &[
            (
                "org.apache.catalina.startup.Bootstrap",
                "file:/opt/tomcat/bin/bootstrap.jar",
                Library,
            ),
            (
                "org.apache.catalina.core.StandardHost",
                "file:/opt/tomcat/lib/catalina.jar",
                Library,
            ),
            (
                "shop.Cart",
                "file:/opt/tomcat/webapps/shop/WEB-INF/classes/",
                Application,
            ),
            (
                "org.lib.Thing",
                "file:/opt/tomcat/webapps/shop/WEB-INF/lib/lib.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "Quarkus",
        program: "target/quarkus-app/quarkus-run.jar",
        main_class: "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
        main_location: "",
        is_merged: false,
        directory: "/w",
        classes: &[
            (
                "org.acme.Greeting",
                "file:/w/target/quarkus-app/app/greeting-1.0.jar",
                Application,
            ),
            (
                "io.vertx.core.Vertx",
                "file:/w/target/quarkus-app/lib/main/vertx-core.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "shaded jar",
        program: "/srv/tool.jar",
        main_class: "com.acme.Tool",
        main_location: "file:/srv/tool.jar",
        is_merged: true,
        directory: "/",
        classes: &[
            ("com.acme.Tool", "file:/srv/tool.jar", Application),
            ("com.acme.io.Reader", "file:/srv/tool.jar", Application),
            (
                "com.google.common.base.Joiner",
                "file:/srv/tool.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "jar and its libraries",
        program: "com.acme.Main",
        main_class: "com.acme.Main",
        main_location: "file:/srv/app.jar",
        is_merged: false,
        directory: "/srv",
        classes: &[
            ("org.other.Part", "file:/srv/app.jar", Application),
            ("org.lib.Thing", "file:/srv/lib/lib.jar", Library),
            ("com.acme.core.Money", "file:/srv/lib/core.jar", Application),
        ],
    },
    Layout {
        name: "test run of Maven",
        program: "/w/core/target/surefire/surefirebooter.jar",
        main_class: "org.apache.maven.surefire.booter.ForkedBooter",
        main_location: "",
        is_merged: false,
        directory: "/w/core",
        classes: &[
            (
                "com.acme.core.MoneyTest",
                "file:/w/core/target/test-classes/",
                Application,
            ),
            (
                "com.acme.core.Money",
                "file:/w/core/target/classes/",
                Application,
            ),
            (
                "org.junit.Assert",
                "file:/srv/.m2/repository/junit/junit.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "source file",
        program: "jdk.compiler/com.sun.tools.javac.launcher.Main",
        main_class: "com.sun.tools.javac.launcher.Main",
        main_location: "jrt:/jdk.compiler",
        is_merged: false,
        directory: "/tmp",
        classes: &[
            ("Hello", "file:/tmp/Hello.java", Application),
            (
                "com.sun.tools.javac.launcher.Main",
                "jrt:/jdk.compiler",
                Jdk,
            ),
        ],
    },
    Layout {
        name: "image of jlink",
        program: "com.acme.app/com.acme.app.Main",
        main_class: "com.acme.app.Main",
        main_location: "jrt:/com.acme.app",
        is_merged: false,
        directory: "/",
        classes: &[
            ("com.acme.app.Main", "jrt:/com.acme.app", Application),
            ("com.acme.core.Money", "jrt:/com.acme.core", Application),
            ("org.lib.Thing", "jrt:/org.lib", Library),
            ("java.util.logging.Logger", "jrt:/java.logging", Jdk),
        ],
    },
    Layout {
        name: "program of Apache",
        program: "org.apache.foo.Main",
        main_class: "org.apache.foo.Main",
        main_location: "file:/srv/foo.jar",
        is_merged: false,
        directory: "/srv",
        classes: &[
            (
                "org.apache.foo.store.Table",
                "file:/srv/lib/foo-store.jar",
                Application,
            ),
            (
                "org.apache.commons.io.IOUtils",
                "file:/srv/lib/commons-io.jar",
                Library,
            ),
        ],
    },
];

#[test]
fn origins_are_right_in_every_layout() {
    for layout in &LAYOUTS {
        let is_launcher = is_launcher(layout.main_class);
        let launch = ProgramLaunch {
            program: layout.program,
            own_package: (!is_launcher)
                .then(|| project_package(layout.main_class))
                .flatten(),
            main_location: (!is_launcher).then_some(layout.main_location),
            is_merged: layout.is_merged,
            working_directory: layout.directory,
            app: PatternList::default(),
            has_no_locations: false,
        };
        for &(name, location, expected) in layout.classes {
            let class = LoadedClass {
                name,
                is_boot: false,
                location: Some(location),
            };
            assert_eq!(
                launch.classify_class(&class),
                expected,
                "{}: {name}",
                layout.name
            );
        }
    }
}

#[test]
fn patterns_of_the_user_decide() {
    let launch = ProgramLaunch {
        own_package: Some("com.acme"),
        app: PatternList::parse("org.other.*+java.util.List").unwrap(),
        ..ProgramLaunch::default()
    };
    let origin = |name, is_boot| {
        launch.classify_class(&LoadedClass {
            name,
            is_boot,
            location: (!is_boot).then_some("file:/w/target/classes/"),
        })
    };
    assert_eq!(origin("org.other.Thing", false), Application);
    assert_eq!(origin("com.acme.Main", false), Library);
    assert_eq!(origin("java.util.List", true), Application);
    assert_eq!(origin("java.util.Map", true), Jdk);
}

#[test]
fn without_locations_all_but_the_jdk_is_own() {
    let launch = ProgramLaunch {
        has_no_locations: true,
        ..ProgramLaunch::default()
    };
    let origin = |name, is_boot| {
        launch.classify_class(&LoadedClass {
            name,
            is_boot,
            location: None,
        })
    };
    assert_eq!(origin("org.other.Thing", false), Application);
    assert_eq!(origin("java.sql.Driver", false), Jdk);
    assert_eq!(origin("java.util.Map", true), Jdk);
}

#[test]
fn a_main_class_names_the_own_package() {
    assert_eq!(project_package("com.acme.shop.Shop"), Some("com.acme"));
    assert_eq!(
        project_package("org.apache.foo.Main"),
        Some("org.apache.foo")
    );
    assert_eq!(project_package("com.acme.Main"), Some("com.acme"));
    // One part says too little, and a shared package nothing.
    assert_eq!(project_package("shop.Main"), None);
    assert_eq!(project_package("org.apache.Main"), None);
    assert_eq!(project_package("Main"), None);
}

#[test]
fn places_are_short() {
    for (location, expected) in [
        (
            "jar:nested:/srv/shop.jar/!BOOT-INF/classes/!/",
            "shop.jar!BOOT-INF/classes",
        ),
        (
            "jar:file:/srv/shop.jar!/BOOT-INF/classes!/",
            "shop.jar!BOOT-INF/classes",
        ),
        ("file:/w/core/target/classes/", "core/target/classes"),
        ("file:/opt/deep/core/target/classes/", "core/target/classes"),
        ("file:/srv/app.jar", "app.jar"),
        ("file:/w/apps/app.jar", "apps/app.jar"),
        ("jrt:/com.acme.app", "com.acme.app"),
    ] {
        assert_eq!(short_location(location, "/w"), expected);
    }
    assert_eq!(short_location("file:/srv/app.jar", ""), "app.jar");
    assert_eq!(short_location("file:/w/", "/w"), "w");
}
