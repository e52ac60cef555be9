// The head of an app's answer, made fit to be passed on, and what follows its body: the app is
// hostile, and what Node would refuse to send is not to end the process.
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { headersForVisitor } from './headers.ts';

const PRINTABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface AnswerChanges {
  cookieName: string;
  /** Our cookie, to be added. */
  setCookie: string | null;
}

/**
 * Begins the response as the answer begins, and says at its end what follows it. False: it cannot
 * be passed on, and nothing was begun.
 */
export function sendHead(
  answer: IncomingMessage,
  response: ServerResponse,
  { cookieName, setCookie }: AnswerChanges,
): boolean {
  const status = answer.statusCode ?? 0;
  if (status < 200 || status > 999) return false;
  const reason = answer.statusMessage !== undefined && PRINTABLE.test(answer.statusMessage) ? answer.statusMessage : '';
  const headers = headersForVisitor(answer.headers, cookieName, setCookie);
  // To HTTP/1.0 the end of the connection is the end of an answer without a length.
  const isKept = response.shouldKeepAlive && response.req.httpVersion !== '1.0';
  try {
    response.writeHead(status, reason || (STATUS_CODES[status] ?? ''), {
      ...headers,
      connection: isKept ? 'keep-alive' : 'close',
    });
  } catch {
    // Node takes exception to it.
    return false;
  }
  if (answer.headers['transfer-encoding'] !== undefined) answer.once('end', () => addTrailers(answer, response));
  return true;
}

function addTrailers({ trailers }: IncomingMessage, response: ServerResponse): void {
  const allowed = Object.entries(headersForVisitor(trailers, '', null)).filter(
    ([name]) => name !== 'content-length' && name !== 'set-cookie',
  );
  if (allowed.length > 0) response.addTrailers(Object.fromEntries(allowed));
}
