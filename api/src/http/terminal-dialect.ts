// How a terminal speaks over its WebSocket: binary frames are its bytes, text frames are orders and, last of all, the exit code. Translates to and from the frames of the
// stream into the sandbox, which is hostile: what it says is checked.
import { terminalExit, terminalOrder } from '@berth/contract/terminal.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import { bytesFrames, controlFrame, FrameFault, FrameReader, TERMINAL_FRAME } from '@berth/protocol/terminal-frames.ts';
import { NotUnderstood, type Dialect, type Outbound } from './websocket-join.ts';

const NOT_ITS_PROTOCOL = 'the terminal of the sandbox does not speak its protocol';

export function terminalDialect(): Dialect {
  let heard: Outbound[] = [];
  let exited = false;
  const reader = new FrameReader((kind, content) => {
    // After its end a terminal has nothing to say.
    if (exited) throw new NotUnderstood(NOT_ITS_PROTOCOL);
    if (kind === TERMINAL_FRAME.bytes) {
      if (content.length > 0) heard.push(content);
      return;
    }
    const exit = terminalExit.safeParse(parseJson(content.toString('utf8')));
    if (!exit.success) throw new NotUnderstood(NOT_ITS_PROTOCOL);
    exited = true;
    heard.push({ json: exit.data });
  });
  return {
    binary: (frame) => (frame.length === 0 ? null : bytesFrames(frame)),
    text: (value) => {
      const order = terminalOrder.safeParse(value);
      if (order.success) return controlFrame(order.data);
      throw new NotUnderstood('a text frame of a terminal is {"resize":{"cols":..,"rows":..}}, {"signal":"SIGINT"} or {"bearer":"..."}');
    },
    received: (chunk) => {
      heard = [];
      try {
        reader.push(chunk);
      } catch (error) {
        throw error instanceof FrameFault ? new NotUnderstood(NOT_ITS_PROTOCOL) : error;
      }
      return heard;
    },
    ended: () => {
      if (!exited) throw new NotUnderstood('the terminal broke off');
      return { send: [], endOurs: true };
    },
    alive: bytesFrames(new Uint8Array(0)),
  };
}
