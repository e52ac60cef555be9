// The app behind the fuzzer's previews: a program for the guest's Python with its own HTTP parser.
// Echoes in each response what it received, byte for byte, and records anything that looks like our
// secrets or a smuggled request.

/** Folder of the app and its output, below the sandbox's files folder. */
export const APP_FOLDER = 'fuzz-app';
/** Header of the app's responses; its value is the word given at start. */
export const APP_HEADER = 'x-fuzz-app';
export const APP_SENT_HEADER = 'x-fuzz-sent';
/** Request header that selects the response: status, mode and bytes of padding. */
export const APP_ORDER_HEADER = 'x-fuzz-do';
const APP_BEHAVIORS = [
  'length',
  'chunked',
  'close',
  'odd',
  'hints',
  'early',
  'break',
  'nothing',
  'garbage',
  'upgrade',
] as const;
export type AppBehavior = (typeof APP_BEHAVIORS)[number];

export const PREVIEW_APP = `
import asyncio, base64, hashlib, json, os, re, sys
from urllib.parse import unquote_to_bytes

FOLDER, WORD = os.path.dirname(os.path.abspath(__file__)), sys.argv[1].encode()
SECRET = re.compile(rb"bp[tc]_[A-Za-z0-9_.-]{20,}|berth_preview|/smuggled")
noted, notes = set(), open(os.path.join(FOLDER, "seen"), "ab", buffering=0)

def note(head):
    for text in (head, unquote_to_bytes(head)):
        for found in SECRET.findall(text):
            if found not in noted:
                noted.add(found)
                notes.write(found + b"\\n")

async def body_of(reader, headers):
    digest, length = hashlib.sha256(), 0
    if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
        while True:
            size = int((await reader.readline()).split(b";")[0], 16)
            if size == 0:
                break
            digest.update(await reader.readexactly(size))
            length += size
            await reader.readexactly(2)
        while (await reader.readline()).strip():
            pass
    else:
        left = int(headers.get(b"content-length", b"0"))
        while left > 0:
            some = await reader.read(min(left, 65536))
            if not some:
                raise EOFError
            digest.update(some)
            left -= len(some)
            length += len(some)
    return digest.hexdigest(), length

async def answer_one(reader, writer):
    head = await reader.readuntil(b"\\r\\n\\r\\n")
    note(head)
    first, *lines = head[:-4].split(b"\\r\\n")
    method = first.split(b" ", 1)[0]
    headers = {}
    for line in lines:
        name, value = line.split(b":", 1)
        headers[name.strip().lower()] = value.strip()
    order = headers.get(b"${APP_ORDER_HEADER}", b"200 length 0").decode("latin1").split(" ")
    status, way, padding = (order + ["length", "0"])[:3]
    if way == "nothing":
        return False
    if way == "garbage":
        writer.write(b"SSH-2.0-OpenSSH_9.9\\r\\n")
        return False
    if headers.get(b"expect", b"").lower() == b"100-continue" and way != "early":
        writer.write(b"HTTP/1.1 100 Continue\\r\\n\\r\\n")
        await writer.drain()
    digest, length = ("", 0) if way == "early" else await body_of(reader, headers)
    said = json.dumps({"head": base64.b64encode(head).decode(), "digest": digest, "length": length}).encode()
    said += b" " * int(padding)
    ours = [b"${APP_HEADER}: " + WORD, b"${APP_SENT_HEADER}: " + status.encode(), b"content-type: application/json"]
    if way == "upgrade" and headers.get(b"upgrade", b"").lower() == b"websocket":
        upgrade = [b"HTTP/1.1 101 Switching Protocols", b"connection: upgrade", b"upgrade: websocket"]
        writer.write(b"\\r\\n".join([*upgrade, *ours, b"", b""]))
        while some := await reader.read(65536):
            writer.write(some)
            await writer.drain()
        return False
    if way == "odd":
        ours += [b"set-cookie: berth_preview=stolen; Path=/", b"set-cookie: a=b; Domain=localhost"]
        ours += [b"connection: x-hop", b"x-hop: hop-marker", b"x-berth-a: hop-marker"]
    if way == "hints":
        writer.write(b"HTTP/1.1 103 Early Hints\\r\\nlink: </a>\\r\\n\\r\\n")
    bare = method == b"HEAD" or status in ("204", "304")
    if way == "chunked" and not bare:
        ours.append(b"transfer-encoding: chunked")
        pieces = [said[at:at + 5000] for at in range(0, len(said), 5000)]
        said = b"".join(b"%x\\r\\n%s\\r\\n" % (len(piece), piece) for piece in pieces) + b"0\\r\\n\\r\\n"
    elif way != "close" and status != "204":
        ours.append(b"content-length: %d" % (len(said) + (1 if way == "break" else 0)))
    writer.write(b"\\r\\n".join([b"HTTP/1.1 " + status.encode() + b" Fine", *ours, b"", b""]) + (b"" if bare else said))
    await writer.drain()
    return way in ("length", "chunked", "odd", "hints") and b"close" not in headers.get(b"connection", b"").lower()

async def serve(reader, writer):
    try:
        while await answer_one(reader, writer):
            pass
    except (asyncio.IncompleteReadError, ConnectionError, EOFError):
        pass
    finally:
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "0.0.0.0", 0, limit=262144)
    with open(os.path.join(FOLDER, "port.new"), "w") as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    os.rename(os.path.join(FOLDER, "port.new"), os.path.join(FOLDER, "port"))
    await server.serve_forever()

asyncio.run(main())
`;
