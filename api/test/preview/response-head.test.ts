// Response heads that Node refuses: the response can still be sent.
import assert from 'node:assert/strict';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { test } from 'node:test';
import { sendHead } from '../../src/preview/response-head.ts';
import { responseHeaders } from '../../src/preview/headers.ts';

const COOKIES = { name: 'c', proven: false };
const CHANGES = {
  cookies: COOKIES,
  setCookie: 'c=1',
  isolation: { embeddable: false, isTrustworthy: true },
  place: { origin: 'http://3000-a.localhost', port: 3000 },
  shown: null,
  noStore: false,
};

const visit = (): { answer: IncomingMessage; response: ServerResponse } => {
  const answer = new IncomingMessage(new Socket());
  answer.statusCode = 200;
  return { answer, response: new ServerResponse(new IncomingMessage(new Socket())) };
};

test('a head that Node refuses sends nothing, so that a refusal can follow', () => {
  const { answer, response } = visit();
  answer.headers = { 'x-a': 'not a byte: 中' };
  assert.equal(sendHead(answer, response, CHANGES), false);
  assert.equal(response.headersSent, false);
  response.writeHead(502, { 'content-length': 0 });
  assert.equal(response.headersSent, true);
});

test('Content-Length follows Content-Disposition', () => {
  const { answer, response } = visit();
  answer.headers = {
    'content-length': '3',
    'content-disposition': 'attachment; filename="\u00e4\u00b8\u00ad.pdf"',
    'x-b': '1',
  };
  const names = Object.keys(responseHeaders(answer.headers, COOKIES, 'c=1'));
  assert.ok(names.indexOf('content-length') > names.indexOf('content-disposition'), names.join());
  assert.equal(sendHead(answer, response, CHANGES), true);
});
