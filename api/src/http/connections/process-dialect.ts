// WebSocket frames of a followed process: binary frames carry its output, text frames where it
// starts, what is lost and that it is complete. The guest is hostile: its frames are validated.
import type { FollowedFrame } from '@berth/contract/commands/follow.ts';
import { COMMAND_OUTPUT } from '@berth/contract/connections/terminal.ts';
import { followedOrder, type FollowedOrder } from '@berth/protocol/calls/processes.ts';
import { parseJson } from '@berth/protocol/json-text.ts';
import { bytesFrames, FrameFault, FrameReader, TERMINAL_FRAME } from '@berth/protocol/terminal-frames.ts';
import { z } from 'zod';
import { cursorOf } from '../../rules/commands/output.ts';
import { InvalidFrame, type Dialect, type Outbound } from './websocket-join.ts';

const NOT_ITS_PROTOCOL = 'the sandbox violated the protocol of process outputs';
const pauseOrder = z.strictObject({ pause: z.boolean() });
const NUMBERS = Object.entries(COMMAND_OUTPUT);

export function processDialect(): Dialect {
  let starts: Extract<FollowedOrder, { starts: object }>['starts'] | undefined;
  let heard: Outbound[] = [];
  let isComplete = false;
  const say = (json: FollowedFrame): void => void heard.push({ json });
  const require = (isValid: boolean): void => {
    if (!isValid) throw new InvalidFrame(NOT_ITS_PROTOCOL);
  };
  const followOrder = (order: FollowedOrder): void => {
    if ('starts' in order) {
      require(starts === undefined && Object.keys(order.starts).length > 0);
      starts = order.starts;
      say({ cursor: cursorOf(starts, starts.output !== undefined) });
      return;
    }
    require(starts !== undefined);
    if ('lost' in order) {
      require(starts?.[order.lost.stream] !== undefined);
      say(order);
    } else if ('complete' in order) {
      isComplete = true;
      say(order);
    } else {
      throw new InvalidFrame('the process has been removed');
    }
  };
  const reader = new FrameReader((kind, content) => {
    require(!isComplete);
    if (kind === TERMINAL_FRAME.control) {
      const order = followedOrder.safeParse(parseJson(content.toString('utf8')));
      if (!order.success) throw new InvalidFrame(NOT_ITS_PROTOCOL);
      followOrder(order.data);
    } else if (content.length > 0) {
      const isOutput = (name: string, number: number): boolean =>
        content.length > 1 && content[0] === number && starts?.[name as keyof typeof COMMAND_OUTPUT] !== undefined;
      require(starts?.output !== undefined || NUMBERS.some(([name, number]) => isOutput(name, number)));
      heard.push(content);
    }
  });
  return {
    binary: () => {
      throw new InvalidFrame('input of a process is written with POST to its path');
    },
    text: (value) => {
      const order = pauseOrder.safeParse(value);
      if (!order.success) throw new InvalidFrame('text frames: {"pause":true}, {"pause":false}, {"bearer":".."}');
      return order.data.pause ? 'pause' : 'resume';
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
      if (!isComplete) throw new InvalidFrame('the connection to the process was lost');
      return { send: [], endOurs: true };
    },
    alive: bytesFrames(new Uint8Array(0)),
  };
}
