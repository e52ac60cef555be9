// JSON lines between guest daemon and bridge, over a Unix socket in the daemon's private folder.
import type { Socket } from 'node:net';
import type { AgentErrorCode } from '@berth/protocol/agent-errors.ts';
import type { GuestAgentView, GuestPromptText, GuestTurn } from '@berth/protocol/agents.ts';
import type { Decision } from './driver.ts';

/** A message with every character escaped, and its other fields. */
const LINE_BYTES = 2 * 1_024 * 1_024;

export interface BridgeOperations {
  message: {
    request: { turnId: string; text: string; author: string; keyed: boolean };
    response: { turn: GuestTurn; known: boolean };
  };
  turn: { request: { turnId: string }; response: { turn: GuestTurn | null } };
  void: { request: { turnId: string }; response: { turn: GuestTurn } };
  answer: { request: { requestId: number | string; decision: Decision }; response: { repeated: boolean } };
  interrupt: { request: object; response: object };
  /** The agent asks for approval from now on. */
  approvals: { request: object; response: object };
  prompt: { request: { isFull: boolean }; response: { prompt: GuestPromptText | null } };
  ping: { request: object; response: object };
  /** Ends a session without an active turn. */
  stop: { request: { reason: 'idle' | 'memory' }; response: object };
}
export type BridgeOperation = keyof BridgeOperations;

export interface BridgeRequest {
  id: number;
  operation: BridgeOperation;
  request: never;
}

/** From the bridge: responses, and the view after each change. `refusal`: why the start failed. */
export type BridgeLine =
  | { id: number; response: object; view: GuestAgentView }
  | { id: number; error: { code: AgentErrorCode | null; message: string } }
  | { view: GuestAgentView; refusal?: { code: AgentErrorCode; message: string } };

export function sendLine(socket: Socket, line: object): void {
  if (!socket.destroyed) socket.write(`${JSON.stringify(line)}\n`);
}

/** Calls `take` with each line; destroys the socket at an invalid or endless one. */
export function receiveLines(socket: Socket, take: (line: unknown) => void): void {
  let chunks: Buffer[] = [];
  let bytes = 0;
  socket.on('data', (chunk: Buffer) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...chunks, chunk.subarray(start, end)]).toString('utf8');
      [chunks, bytes] = [[], 0];
      start = end + 1;
      try {
        take(JSON.parse(line));
      } catch (error) {
        console.error('an invalid line of an agent session:', error);
        socket.destroy();
        return;
      }
    }
    chunks.push(chunk.subarray(start));
    bytes += chunk.length - start;
    if (bytes > LINE_BYTES) socket.destroy();
  });
  socket.on('error', () => socket.destroy());
}
