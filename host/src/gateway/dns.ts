// Answers messages of guests to their resolver through the gateway. Root reads a bounded frame.
import type { AnswerMessage } from '../network/dns/questions.ts';
import type { Gateway } from './connections.ts';
import { FRAME, FrameFault, FrameReader, writeJson } from './frames.ts';
import { answered, type GatewayOrder } from './order.ts';

/** Two messages of 64 KiB in base64, and the rest. */
const RESPONSE_BYTES = 262_144;
/** Longer than all queries of name servers for one question. */
const DEADLINE_MS = 6_000;

export function answerBehind(gateway: Gateway): AnswerMessage {
  return async ({ bytes, servers, policy: { mode, names }, ...rest }, signal) => {
    const either = AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]);
    const connection = await gateway.connect(either);
    const onAbort = (): void => void connection.destroy();
    either.addEventListener('abort', onAbort, { once: true });
    try {
      either.throwIfAborted();
      const message = bytes.toString('base64');
      const order: GatewayOrder = {
        do: 'answer',
        ...rest,
        message,
        servers: [...servers],
        policy: { mode, names: [...names] },
      };
      writeJson(connection, FRAME.order, order);
      const frame = await new FrameReader(connection).frame(RESPONSE_BYTES);
      if (frame?.kind !== FRAME.result) throw new FrameFault('the gateway did not answer');
      const { answer, withheld, ...found } = answered.parse(JSON.parse(frame.payload.toString('utf8')));
      return { ...found, answer: decoded(answer), withheld: decoded(withheld) };
    } finally {
      either.removeEventListener('abort', onAbort);
      connection.destroy();
    }
  };
}

function decoded(text: string | null): Buffer | null {
  return text === null ? null : Buffer.from(text, 'base64');
}
