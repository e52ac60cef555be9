// Makes an app's answer fit to be passed on: the app is hostile, and what Node would refuse to send is not to get that far.
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { headersForVisitor } from './headers.ts';

const PRINTABLE = /^[\t\x20-\x7e\x80-\xff]*$/;

export interface AnswerChanges {
  cookieName: string;
  /** Our cookie, to be added. */
  setCookie: string | null;
}

/** Changes the answer in place. False: it cannot be passed on. */
export function tidyAnswer(answer: IncomingMessage, response: ServerResponse, { cookieName, setCookie }: AnswerChanges): boolean {
  const status = answer.statusCode ?? 0;
  if (status < 200 || status > 999) return false;
  if (!answer.statusMessage || !PRINTABLE.test(answer.statusMessage)) answer.statusMessage = STATUS_CODES[status] ?? '';
  const mayTrail = answer.headers['transfer-encoding'] !== undefined;
  answer.headers = headersForVisitor(answer.headers, cookieName, setCookie);
  // To HTTP/1.0 the end of the connection is the end of an answer without a length.
  const isKept = response.shouldKeepAlive && response.req.httpVersion !== '1.0';
  answer.headers.connection = isKept ? 'keep-alive' : 'close';
  if (mayTrail) answer.once('end', () => addTrailers(answer, response));
  return true;
}

/** Begins the response with the head of an answer that was made fit. False: Node takes exception to it, and nothing was begun. */
export function sendHead({ statusCode = 502, statusMessage = '', headers }: IncomingMessage, response: ServerResponse): boolean {
  try {
    response.writeHead(statusCode, statusMessage, headers);
    return true;
  } catch {
    return false;
  }
}

function addTrailers({ trailers }: IncomingMessage, response: ServerResponse): void {
  const allowed = Object.entries(headersForVisitor(trailers, '', null)).filter(
    ([name]) => name !== 'content-length' && name !== 'set-cookie',
  );
  if (allowed.length > 0) response.addTrailers(Object.fromEntries(allowed));
}
