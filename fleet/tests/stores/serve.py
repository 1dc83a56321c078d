"""Runs a command on a server of an object store on this machine, with an empty bucket. The environment of the command says where it is.

    serve.py moto -- COMMAND…
    serve.py azurite NODE PROGRAM FOLDER -- COMMAND…

The exit code is the command's. `cargo xtask fleet` has a server of S3 of its own, gofakes3.
"""

import base64
import hashlib
import hmac
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from email.utils import formatdate

BUCKET = "runs"
# Azurite's own, which its documents name: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def send(method, url, body=b"", **headers):
    """Until the server is there."""
    limit = time.monotonic() + 60
    while True:
        request = urllib.request.Request(url, data=body, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{method} {url}: {error.code} {error.read()[:500]}")
        except OSError as error:
            if time.monotonic() > limit:
                raise SystemExit(f"{method} {url}: {error}")
            time.sleep(0.05)


def moto():
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, *_):
            pass

    # One request at a time: a conditional put looks first, and writes then.
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=False, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    send("PUT", f"http://127.0.0.1:{server.server_port}/{BUCKET}")
    return None, {
        "LUCCE_TEST_STORE": f"s3://{BUCKET}/some/fleet",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }


def azurite(node, program, folder):
    port = free_port()
    command = [node, program, "--silent", "--inMemoryPersistence", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    server = subprocess.Popen(command + ["--skipApiVersionCheck", "--disableTelemetry"], cwd=folder, stdout=subprocess.DEVNULL)
    endpoint = f"http://127.0.0.1:{port}/{AZURITE_ACCOUNT}"
    date, version = formatdate(usegmt=True), "2023-11-03"
    fields = ["PUT", *[""] * 11, f"x-ms-date:{date}", f"x-ms-version:{version}"]
    text = "\n".join(fields + [f"/{AZURITE_ACCOUNT}/{AZURITE_ACCOUNT}/{BUCKET}", "restype:container"])
    signed = hmac.new(base64.b64decode(AZURITE_KEY), text.encode(), hashlib.sha256).digest()
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {AZURITE_ACCOUNT}:{base64.b64encode(signed).decode()}",
        "Content-Type": "",
    }
    send("PUT", f"{endpoint}/{BUCKET}?restype=container", **headers)
    return server, {
        "LUCCE_TEST_STORE": f"az://{BUCKET}/some/fleet",
        "AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY,
        "AZURE_STORAGE_ENDPOINT": endpoint,
        "AZURE_ALLOW_HTTP": "true",
    }


def main():
    at = sys.argv.index("--")
    name, *arguments = sys.argv[1:at]
    start = {"moto": moto, "azurite": azurite}[name]
    server, environment = start(*arguments)
    code = subprocess.call(sys.argv[at + 1 :], env={**os.environ, **environment})
    if server:
        server.kill()
        server.wait()
    # The thread of a server is not waited for.
    os._exit(code if code >= 0 else 1)


if __name__ == "__main__":
    main()
