// What a host answers: bounded as it comes in, and either the verb's result, an error of the protocol, or a failure that says what it was instead.
import type { IncomingMessage } from 'node:http';
import type { z } from 'zod';
import { hostError } from '@berth/protocol/host.ts';
import { HostError } from './error.ts';

/** Reads at most `maxBytes`. `whole` is false when the connection broke before the end of the body. */
export function readBody(response: IncomingMessage, maxBytes: number): Promise<{ text: string; whole: boolean }> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.byteLength;
      if (bytes <= maxBytes) {
        chunks.push(chunk);
        return;
      }
      reject(new HostError('invalid_answer', `the answer is longer than ${maxBytes} bytes`));
      response.destroy();
    });
    const settle = (whole: boolean) => (): void => resolve({ text: Buffer.concat(chunks).toString('utf8'), whole });
    response.on('end', settle(true));
    // After 'error' or a premature close what came so far may still hold the error envelope that explains it.
    response.on('error', settle(false));
    response.on('close', settle(false));
  });
}

/** The verb's result, or what the host refused it with, or why it is no answer. */
export function parseAnswer<S extends z.ZodType>(
  schema: S,
  status: number,
  text: string,
  whole: boolean,
  where: string,
): HostError | { value: z.output<S> } {
  let json: unknown;
  try {
    // Leading spaces that kept the connection busy are white space to JSON too.
    json = JSON.parse(text);
  } catch (error) {
    if (!whole) return new HostError('host_unreachable', `${where}: the connection broke in the middle of the answer`);
    return new HostError('invalid_answer', `${where}: status ${status} with a body that is not JSON`, { cause: error });
  }
  const refused = hostError.safeParse(json);
  if (refused.success) {
    const { code, message, shortage } = refused.data.error;
    return new HostError(code, message, { shortage });
  }
  if (!whole) return new HostError('host_unreachable', `${where}: the connection broke in the middle of the answer`);
  if (status !== 200) return new HostError('invalid_answer', `${where}: status ${status} without an error the protocol knows`);
  const answer = schema.safeParse(json);
  if (answer.success) return { value: answer.data };
  const issue = answer.error.issues[0];
  return new HostError('invalid_answer', `${where}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'unknown fault'}`);
}
