// The app of the preview benchmark: a minimal program for the image's Python that serves small and
// big responses and echoes WebSocket frames, so that the path to it dominates.

export const PREVIEW_APP_PORT = 3000;
/** Body sizes of a small and a big response, in bytes. */
const SMALL_BYTES = 1_024;
export const BIG_BYTES = 128 * 1_048_576;

/** `/small`, `/big`, and `/socket` for a WebSocket with frames of up to 125 bytes. */
export const PREVIEW_APP = `
import asyncio, base64, hashlib, socket

SMALL = b"HTTP/1.1 200 OK\\r\\nContent-Type: text/plain\\r\\nContent-Length: ${SMALL_BYTES}\\r\\n\\r\\n"
SMALL += b"x" * ${SMALL_BYTES}
PART = b"x" * 262144

class App(asyncio.Protocol):
    def connection_made(self, transport):
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(high=524288)
        self.transport, self.buffer, self.frames, self.left = transport, b"", False, 0

    def data_received(self, data):
        if self.frames:
            return self.echo(data)
        self.buffer += data
        while b"\\r\\n\\r\\n" in self.buffer:
            head, self.buffer = self.buffer.split(b"\\r\\n\\r\\n", 1)
            if head.startswith(b"GET /small"):
                self.transport.write(SMALL)
            elif head.startswith(b"GET /big"):
                self.transport.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: ${BIG_BYTES}\\r\\n\\r\\n")
                self.left = ${BIG_BYTES}
                self.more()
            else:
                named = b"sec-websocket-key:"
                lines = head.split(b"\\r\\n")
                key = next(line.split(b":", 1)[1].strip() for line in lines if line.lower().startswith(named))
                accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
                self.transport.write(b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\n"
                    b"Connection: Upgrade\\r\\nSec-WebSocket-Accept: " + accept + b"\\r\\n\\r\\n")
                self.frames = True
                return

    def echo(self, data):
        self.buffer += data
        while len(self.buffer) >= 6:
            length = self.buffer[1] & 127
            if len(self.buffer) < 6 + length:
                return
            mask, body = self.buffer[2:6], self.buffer[6:6 + length]
            self.buffer = self.buffer[6 + length:]
            self.transport.write(bytes([130, length]) + bytes(byte ^ mask[at % 4] for at, byte in enumerate(body)))

    def more(self):
        while self.left > 0 and not self.paused:
            self.transport.write(PART)
            self.left -= len(PART)

    paused = False

    def pause_writing(self):
        self.paused = True

    def resume_writing(self):
        self.paused = False
        self.more()

async def main():
    server = await asyncio.get_running_loop().create_server(App, "0.0.0.0", ${PREVIEW_APP_PORT}, backlog=128)
    await server.serve_forever()

asyncio.run(main())
`;
