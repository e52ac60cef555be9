// Compares a response with the document: status, form, schema. A service fault is never allowed.
import type { Operation } from './document.ts';
import type { ReadyRequest } from './request.ts';

/**
 * `fault`: 500. `undocumented`: the operation lacks the status. `schema`: violates the schema of
 * the status. `taken`: an invalid request was accepted.
 */
export type Fault = 'fault' | 'hung' | 'undocumented' | 'schema' | 'taken';

export interface SentAnswer {
  status: number;
  type: string;
  text: string;
}

interface Verdict {
  /** null: the response matches the document. */
  fault: { kind: Fault; why: string } | null;
  /** Parsed response body, if JSON. */
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
  // An invalid body must be refused. An operation without a body may ignore what is sent.
  if (status < 300 && !request.fits && operation.body !== null)
    return bad('taken', 'the document does not take this body', value);
  return { fault: null, value };
}
