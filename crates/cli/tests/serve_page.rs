//! The page of `lately serve` in headless Chromium, as somebody uses it.
#![cfg(all(target_os = "linux", feature = "serve"))]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Folder;
use support::serving::Serving;

/// A browser without a window, spoken to through two pipes.
struct Browser {
    child: Child,
    to: File,
    from: BufReader<File>,
    next: u64,
    session: Option<String>,
    _folder: Folder,
}

fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("LATELY_CHROMIUM").map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = || {
        let names = ["chromium", "chromium-browser", "google-chrome", "chrome-headless-shell"];
        std::env::split_paths(&paths)
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .find(|path| path.is_file())
    };
    named.or_else(found)
}

impl Browser {
    /// Opens a page; nothing where there is no browser.
    fn open(url: &str, width: u32, height: u32) -> Option<Self> {
        let Some(program) = chromium() else {
            eprintln!("skipped: chromium is not installed");
            return None;
        };
        let folder = Folder::new();
        let (to, from) = (folder.path("to"), folder.path("from"));
        for pipe in [&to, &from] {
            assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        // It reads messages from file descriptor 3 and writes them to 4.
        let script = r#"exec "$0" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
            --user-data-dir="$3" --window-size="$4" --hide-scrollbars --remote-debugging-pipe about:blank 3<"$1" 4>"$2""#;
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(program)
            .args([&to, &from, &folder.path("profile"), &format!("{width},{height}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = OpenOptions::new().write(true).open(to).unwrap();
        let from = BufReader::new(File::open(from).unwrap());
        assert!(child.try_wait().unwrap().is_none());
        let mut browser = Self { child, to, from, next: 0, session: None, _folder: folder };
        let target = browser.send("Target.createTarget", &json!({ "url": url }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.send("Target.attachToTarget", &attach);
        browser.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        browser.send("Page.enable", &json!({}));
        browser.send("Runtime.enable", &json!({}));
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        browser.send("Emulation.setDeviceMetricsOverride", &size);
        browser.wait(&format!(
            "location.href === {} && document.readyState === 'complete'",
            json!(url)
        ));
        Some(browser)
    }

    fn send(&mut self, method: &str, parameters: &Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        loop {
            let mut bytes = Vec::new();
            assert!(self.from.read_until(0, &mut bytes).unwrap() > 0, "the browser went");
            bytes.pop();
            let reply: Value = serde_json::from_slice(&bytes).unwrap();
            if reply["method"] == "Runtime.exceptionThrown" {
                panic!("the page: {reply}");
            }
            if reply["id"] == self.next {
                assert!(reply["error"].is_null(), "{method}: {reply}");
                return reply["result"].clone();
            }
        }
    }

    /// The value of an expression in the page.
    fn value(&mut self, expression: &str) -> Value {
        let parameters =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.send("Runtime.evaluate", &parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    fn wait(&mut self, expression: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.value(expression) != true {
            if Instant::now() > end {
                panic!("never: {expression}, in {}", self.text("main"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn text(&mut self, selector: &str) -> String {
        let expression = format!("document.querySelector({}).innerText", json!(selector));
        self.value(&expression).as_str().unwrap_or_default().to_owned()
    }

    /// Presses a key.
    fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Escape" => 27,
            "ArrowDown" => 40,
            "ArrowRight" => 39,
            _ => 0,
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            let text = if key == "Enter" { "\r" } else { key };
            if kind == "keyDown" && text.len() == 1 {
                event["text"] = json!(text);
            }
            self.send("Input.dispatchKeyEvent", &event);
        }
    }

    /// Types into the field that has the focus.
    fn type_text(&mut self, text: &str) {
        self.send("Input.insertText", &json!({ "text": text }));
    }

    /// Is anything wider than the window?
    fn overflows(&mut self) -> bool {
        self.value("document.documentElement.scrollWidth > innerWidth") == true
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes a filter, observes and asks by hand, and sees it, in light and dark and on a narrow screen; keys only.
#[test]
fn by_hand() {
    let server = Serving::start(&[]);
    let url = format!("http://127.0.0.1:{}/", server.http);
    let Some(mut page) = Browser::open(&url, 1200, 900) else { return };
    page.wait("document.readyState === 'complete' && document.getElementById('state').textContent === 'live'");
    assert!(page.text("#empty").contains("There are no filters yet"));
    // A new filter, with the keyboard alone.
    page.press("n");
    page.wait("document.getElementById('d-new').open");
    page.value("document.querySelector('#n-form [name=name]').focus()");
    page.type_text("crawl:<b>1</b>");
    page.press("Enter");
    page.wait("document.getElementById('d-filter').open");
    assert_eq!(page.text("#f-name"), "crawl:<b>1</b>");
    assert!(page.text("#f-facts").contains("10 min"));
    page.value("document.getElementById('f-items').focus()");
    page.type_text("a\nb\na");
    page.value("document.querySelector('#f-form [value=observe]').click()");
    page.wait("document.getElementById('f-said').innerText.includes('duplicate')");
    let said = page.value("[...document.querySelectorAll('#f-said div')].map(line => line.innerText.replace(/\\s+/, ' '))");
    assert_eq!(said, json!(["a fresh", "b fresh", "a duplicate"]));
    page.value("document.querySelector('#f-form [value=seen]').click()");
    page.wait("document.getElementById('f-said').innerText.includes('seen')");
    assert!(
        server.ask("GET", "/v1/filters/crawl%3A%3Cb%3E1%3C%2Fb%3E", "").contains(r#""asked":3"#)
    );
    page.press("Escape");
    page.wait("!document.getElementById('d-filter').open && document.querySelectorAll('#rows tr').length === 1");
    page.press("ArrowDown");
    assert_eq!(page.value("document.activeElement.getAttribute('aria-label')"), "crawl:<b>1</b>");
    page.press("Enter");
    page.wait("document.getElementById('d-filter').open");
    page.press("Escape");
    // Keys of SET.
    page.value("document.getElementById('keys-open').click()");
    page.value("document.querySelector('#k-form [name=key]').value = 'order:17'; document.querySelector('#k-form [value=mark]').click()");
    page.wait("document.getElementById('k-said').innerText === 'fresh: marked now'");
    page.value("document.querySelector('#k-form [value=mark]').click()");
    page.wait("document.getElementById('k-said').innerText === 'seen before'");
    page.press("Escape");
    // A wrong request is said where it was made.
    page.press("n");
    page.value("document.querySelector('#n-form [name=name]').value = 'x'; document.querySelector('#n-form [name=fpr]').value = '7'; document.querySelector('#n-form button.main').click()");
    page.wait("document.getElementById('n-said').innerText.includes('fpr is a number above 0 and below 1')");
    page.press("Escape");
    // As the system says, then light, then dark; all of it can be read.
    let background = "getComputedStyle(document.body).backgroundColor";
    let dark = |is_dark: bool| json!({ "features": [{ "name": "prefers-color-scheme", "value": if is_dark { "dark" } else { "light" } }] });
    page.send("Emulation.setEmulatedMedia", &dark(true));
    page.wait(&format!("{background} === 'rgb(17, 21, 27)'"));
    page.value("document.getElementById('theme').click()");
    page.wait(&format!("{background} === 'rgb(245, 246, 248)'"));
    page.value("document.getElementById('theme').click()");
    page.send("Emulation.setEmulatedMedia", &dark(false));
    page.wait(&format!("{background} === 'rgb(17, 21, 27)'"));
    for width in [1200, 700, 360] {
        let size =
            json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        page.send("Emulation.setDeviceMetricsOverride", &size);
        assert!(!page.overflows(), "at {width}");
    }
    // Nothing comes from elsewhere.
    let others = page.value("performance.getEntriesByType('resource').filter(entry => !entry.name.startsWith(location.origin) && !entry.name.startsWith('data:')).length");
    assert_eq!(others, 0);
    // It says when the server is gone.
    server.end();
    page.wait("document.getElementById('state').textContent === 'no answer' && !document.getElementById('note').hidden");
}

/// Ten thousand filters: a page of them at a time, found by name, sorted, in little time.
#[test]
fn ten_thousand_filters() {
    let server = Serving::start(&[]);
    let mut client = server.connect(&server.port);
    let many: String = (0..10_000).map(|n| format!("BF.ADD tenant:{n} x\r\n")).collect();
    client.write_all((many + "BF.ADD tenant:77 y\r\nQUIT\r\n").as_bytes()).unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut client, &mut said).unwrap();
    assert_eq!(said.matches(":1").count(), 10_001);
    let url = format!("http://127.0.0.1:{}/", server.http);
    let Some(mut page) = Browser::open(&url, 1200, 900) else { return };
    page.wait("document.querySelectorAll('#rows tr').length === 50");
    assert!(page.text("#range").contains("1–50 of 10,000"));
    page.press("ArrowRight");
    page.wait("document.getElementById('range').innerText.startsWith('51–100 ')");
    page.press("/");
    page.type_text("tenant:77*");
    page.wait("document.getElementById('total').innerText === '111 of 10,000'");
    page.value("[...document.querySelectorAll('#heads button')].find(button => button.innerText.startsWith('Name')).click()");
    page.wait("document.querySelector('#rows td').innerText === 'tenant:77'");
    let took = page.value("(async () => { const begun = performance.now(); for (let n = 0; n < 5; n++) await refresh(); return (performance.now() - begun) / 5; })()");
    eprintln!("a refresh with 10,000 filters takes {took} ms");
    server.end();
}

/// A password is asked for, and a wrong one is said.
#[test]
fn with_a_password() {
    let folder = Folder::new();
    let server = Serving::start(&["--password-file", &folder.file("password", "secret\n")]);
    let url = format!("http://127.0.0.1:{}/", server.http);
    let Some(mut page) = Browser::open(&url, 1200, 900) else { return };
    for (password, expected) in [
        ("wrong", "document.getElementById('p-said').innerText.includes('wrong')"),
        ("secret", "document.getElementById('state').textContent === 'live'"),
    ] {
        page.wait("document.getElementById('d-password').open");
        // Three wrong ones a second are too many.
        std::thread::sleep(Duration::from_millis(1100));
        page.value(&format!("document.querySelector('#p-form [name=password]').value = '{password}'; document.querySelector('#p-form button').click()"));
        page.wait(expected);
    }
    server.end();
}

/// Who needs no password is asked for one where that may too little.
#[test]
fn with_users() {
    // SHA-256 of "2".
    let users = "[[user]]\nname = \"root\"\nmay = \"admin\"\npassword_sha256 = \"d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35\"\n
        [[user]]\nname = \"default\"\nmay = \"read\"\nfilters = [\"public:*\"]\n";
    let folder = Folder::new();
    let server = Serving::start(&["--users-file", &folder.file("users.toml", users)]);
    let url = format!("http://127.0.0.1:{}/", server.http);
    let Some(mut page) = Browser::open(&url, 1200, 900) else { return };
    page.wait("document.getElementById('state').textContent === 'live'");
    let make = |name: &str| {
        format!(
            "call('PUT', '/v1/filters/{name}', {{ window: '1m' }}).then(() => 'made', (error) => error.message)"
        )
    };
    let said = page.value(&make("public:a"));
    assert!(said.as_str().unwrap().contains("no permissions to run"), "{said}");
    page.wait("document.getElementById('d-password').open && document.getElementById('p-said').innerText.includes('no permissions')");
    page.value("document.querySelector('#p-form [name=password]').value = '2'; document.querySelector('#p-form button').click()");
    for name in ["public:a", "b"] {
        assert_eq!(page.value(&make(name)), "made");
    }
    page.wait("document.getElementById('total').innerText === '2'");
    // Without the token there is one to see.
    page.value("password = null");
    page.wait("document.getElementById('total').innerText === '1'");
    server.end();
}
