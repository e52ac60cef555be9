// The output of a process over a WebSocket.
import { z } from 'zod';
import { defineRoute } from '../route/route.ts';
import { ERRORS_OF_PROCESS, outputFrom, processParams, type ProcessOutputChunk } from './processes.ts';

/**
 * Output of a process as a WebSocket, opened as a terminal is (connections/terminal.ts). Neither
 * wakes a sandbox nor keeps one awake. Frames of the server:
 *
 *   cursor    {"cursor":"0.0"}, a text frame, the first: the cursor where the output starts.
 *   bytes     Binary frames: of a terminal as they are; otherwise the first byte is 1 for stdout or
 *             2 for stderr. The cursor has an offset for each stream, stdout first: it moves by the
 *             bytes of each frame, and by those that are lost.
 *   lost      {"lost":{"stream":"stdout","bytes":65536}}, a text frame: bytes that are no longer
 *             kept, before the next ones of the stream.
 *   complete  {"complete":true}, a text frame, the last: no program can write any more; then the
 *             server closes with 1000. Any other close says nothing of the process: continue from
 *             the cursor with another connection or request.
 *
 * The client sends {"pause":true}, {"pause":false} and {"bearer":"<token>"}, as to a terminal.
 */
export const followProcessOutput = defineRoute({
  name: 'followProcessOutput',
  summary: 'Sends output after the cursor as it is written, each byte once, in binary frames',
  method: 'GET',
  path: '/v1/sandboxes/{sandboxId}/processes/{processId}/follow',
  websocket: true,
  auth: ['session', 'api_key'],
  permission: 'sandbox.exec',
  request: { params: processParams, query: z.strictObject(outputFrom) },
  response: { status: 101, body: z.undefined() },
  errors: [...ERRORS_OF_PROCESS, 'too_many_connections'],
  activity: null,
  published: false,
});

/** Text frames of the server, in the order of {@link followProcessOutput}. */
export type FollowedFrame =
  | { cursor: string }
  | { lost: { stream: ProcessOutputChunk['stream']; bytes: number } }
  | { complete: true };
