// Writes a response as server-sent events, at the pace of its parts.
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Part, Plan } from './script.ts';

export interface StreamEvent {
  type: string;
  [name: string]: unknown;
}

/** A provider's form of a streamed response. */
export interface StreamForm {
  start(): StreamEvent[];
  /** Begins a part, given its index. */
  begin(part: Part, index: number): StreamEvent[];
  delta(text: string, index: number): StreamEvent;
  finish(part: Part, index: number): StreamEvent[];
  end(parts: readonly Part[]): StreamEvent[];
}

const WORD_MS = 20;

/** Streams the plan; resolves when the response has ended or the client has left. */
export async function stream(response: ServerResponse, plan: Plan, form: StreamForm): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  if (plan.end === 'hang' && plan.parts.length === 0) return;
  const send = (events: readonly StreamEvent[]): void => {
    for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  };
  send(form.start());
  for (const [index, part] of plan.parts.entries()) {
    send(form.begin(part, index));
    for (const word of part.kind === 'tool' ? [] : part.slow ? part.text.split(/(?<= )/) : [part.text]) {
      if (response.destroyed) return;
      send([form.delta(word, index)]);
      // The pace of a slow model: a client can interrupt in mid stream.
      if (part.kind === 'text' && part.slow) await delay(WORD_MS);
    }
    const isBroken = plan.end !== 'complete' && part.kind === 'text' && index === plan.parts.length - 1;
    if (!isBroken) send(form.finish(part, index));
  }
  if (plan.end === 'hang') return;
  if (plan.end === 'break') {
    breakOff(response);
    return;
  }
  send(form.end(plan.parts));
  response.end();
}

/** Breaks the connection after the bytes written before. */
function breakOff(response: ServerResponse): void {
  response.write(':\n\n', () => response.socket?.destroy());
}
