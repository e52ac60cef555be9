// WebSocket frames of a terminal, and of a command without one: binary frames carry bytes, text
// frames carry orders and, last, the exit code. Translates to and from the frames of the stream
// into the sandbox. The guest is hostile: its frames are validated.
import { COMMAND_OUTPUT, commandOrder, terminalExit, terminalOrder } from '@berth/contract/connections/terminal.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import { bytesFrames, controlFrame, FrameFault, FrameReader, TERMINAL_FRAME } from '@berth/protocol/terminal-frames.ts';
import type { z } from 'zod';
import { InvalidFrame, type Dialect, type Outbound } from './websocket-join.ts';

const NOT_ITS_PROTOCOL = 'the terminal of the sandbox violated its protocol';

interface Kind {
  orders: z.ZodType<object>;
  notUnderstood: string;
  isOutput(this: void, content: Buffer): boolean;
}

const TERMINAL: Kind = {
  orders: terminalOrder,
  notUnderstood: 'text frames: {"resize":{"cols":80,"rows":24}}, {"signal":"SIGINT"}, {"pause":true}, {"bearer":".."}',
  isOutput: () => true,
};
const COMMAND: Kind = {
  orders: commandOrder,
  notUnderstood: 'text frames with tty=false: {"end":true}, {"signal":"SIGINT"}, {"pause":true}, {"bearer":".."}',
  // Stream number, then at least a byte.
  isOutput: (content) =>
    content.length > 1 && (content[0] === COMMAND_OUTPUT.stdout || content[0] === COMMAND_OUTPUT.stderr),
};

export function terminalDialect(): Dialect {
  return dialectOf(TERMINAL);
}

export function commandDialect(): Dialect {
  return dialectOf(COMMAND);
}

function dialectOf({ orders, notUnderstood, isOutput }: Kind): Dialect {
  let inputEnded = false;
  let heard: Outbound[] = [];
  let exited = false;
  const reader = new FrameReader((kind, content) => {
    // A terminal sends nothing after its end.
    if (exited) throw new InvalidFrame(NOT_ITS_PROTOCOL);
    if (kind === TERMINAL_FRAME.bytes) {
      if (content.length === 0) return;
      if (!isOutput(content)) throw new InvalidFrame(NOT_ITS_PROTOCOL);
      heard.push(content);
      return;
    }
    const exit = terminalExit.safeParse(parseJson(content.toString('utf8')));
    if (!exit.success) throw new InvalidFrame(NOT_ITS_PROTOCOL);
    exited = true;
    heard.push({ json: exit.data });
  });
  return {
    binary: (frame) => {
      if (inputEnded) throw new InvalidFrame('no data may follow the end');
      return frame.length === 0 ? null : bytesFrames(frame);
    },
    text: (value) => {
      const order = orders.safeParse(value);
      if (!order.success) throw new InvalidFrame(notUnderstood);
      if ('pause' in order.data) return order.data.pause ? 'pause' : 'resume';
      inputEnded ||= 'end' in order.data;
      return controlFrame(order.data);
    },
    received: (chunk) => {
      heard = [];
      try {
        reader.push(chunk);
      } catch (error) {
        throw error instanceof FrameFault ? new InvalidFrame(NOT_ITS_PROTOCOL) : error;
      }
      return heard;
    },
    ended: () => {
      if (!exited) throw new InvalidFrame('the connection to the terminal was lost');
      return { send: [], endOurs: true };
    },
    alive: bytesFrames(new Uint8Array(0)),
  };
}
