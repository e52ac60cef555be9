// Whether an answer is one that the document has: its status, its form, its schema. A fault of the
// service is never one.
import type { Operation } from './document.ts';
import type { ReadyRequest } from './request.ts';

/**
 * `fault`: 500. `undocumented`: a status that the operation does not have. `schema`: outside what
 * the document gives for the status. `taken`: what it forbids.
 */
export type Fault = 'fault' | 'hung' | 'undocumented' | 'schema' | 'taken';

export interface SentAnswer {
  status: number;
  type: string;
  text: string;
}

export interface Verdict {
  /** Null: all is as the document says. */
  fault: { kind: Fault; why: string } | null;
  /** What was answered, where it is JSON. */
  value: unknown;
}

export function judge(
  operation: Operation,
  request: Pick<ReadyRequest, 'fits'>,
  { status, type, text }: SentAnswer,
): Verdict {
  const bad = (kind: Fault, why: string, value?: unknown): Verdict => ({ fault: { kind, why }, value });
  if (status === 500) return bad('fault', 'a fault of the service');
  const isValid = operation.answers.get(status);
  if (isValid === undefined) return bad('undocumented', `the document has no ${status} for ${operation.id}`);
  if (!/^application\/json(;|$)/.test(type)) return bad('schema', `the content type is ${type}`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return bad('schema', `no JSON: ${String(error)}`);
  }
  if (!isValid(value)) {
    const [first] = isValid.errors ?? [];
    return bad(
      'schema',
      `${first?.instancePath ?? ''} ${first?.message ?? ''} ${JSON.stringify(first?.params)}`,
      value,
    );
  }
  // A body that the document refuses is to be refused; where an operation takes none, what is sent
  // may be left unread.
  if (status < 300 && !request.fits && operation.body !== null)
    return bad('taken', 'the document does not take this body', value);
  return { fault: null, value };
}
