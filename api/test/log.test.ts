// Redaction in the log: the second line of defence for secrets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openLog, withoutSecrets } from '../src/log.ts';
import { newToken } from '../src/services/access/bearer-token.ts';

const SECRET = 'correct-horse-battery-staple';

/** Returns the output of a log call. */
function written(say: (log: ReturnType<typeof openLog>) => void): string {
  let text = '';
  say(openLog('trace', { write: (line: string) => void (text += line) }));
  return text;
}

const LOGGED: [what: string, say: (log: ReturnType<typeof openLog>, token: string) => void][] = [
  [
    'a field named after a secret',
    (log, token) => log.info({ authorization: `Bearer ${token}`, password: SECRET, cookie: `a=${SECRET}` }),
  ],
  ['headers', (log, token) => log.info({ headers: { authorization: token, host: 'x' }, reason: 1 })],
  ['a body', (log) => log.info({ body: { email: 'a@example.test', password: SECRET } })],
  ['a secret deep down', (log) => log.info({ a: { b: [{ client_secret: SECRET, refreshToken: `"${SECRET}"` }] } })],
  ['a token in a message', (log, token) => log.info(`called with ${token}, twice`)],
  ['a token behind its scheme', (log, token) => log.info({ said: `Bearer ${token.slice(4)}` })],
  ['a token in a query', (log) => log.warn(`GET /reset-password?token=${SECRET}&next=/ was answered twice`)],
  ['a code in a query', (log) => log.warn(`GET /auth/oidc/callback?state=${SECRET}&code=${SECRET}`)],
  ['the password of a URL', (log) => log.info({ url: `postgres://berth:${SECRET}@localhost/berth` })],
  ['an error with a token', (log, token) => log.error({ err: new Error(`no ${token} here`) })],
  [
    'an error with fields',
    (log) =>
      log.error({ err: Object.assign(new Error('failed'), { detail: `Key (x)=(${SECRET})`, parameters: [SECRET] }) }),
  ],
  [
    'the cause of an error',
    (log, token) => log.error({ err: new Error('outer', { cause: new Error(`inner ${token}`) }) }),
  ],
  [
    'errors together',
    (log, token) => log.error({ err: new AggregateError([new Error(`one ${token}`)], 'all failed') }),
  ],
  ['an error alone', (log, token) => log.error(new Error(`alone ${token}`))],
  ['what is thrown without being an error', (log) => log.error({ err: { password: SECRET, said: SECRET } })],
  [
    'a request as the framework logs it',
    (log, token) => log.info({ req: { method: 'GET', url: `/x?y=${SECRET}`, headers: { a: token } } }),
  ],
  ['a child of the log', (log, token) => log.child({ token }).info({ said: token })],
];

for (const [what, say] of LOGGED) {
  test(`a secret is redacted from ${what}`, () => {
    const token = newToken('session');
    const line = written((log) => say(log, token));
    assert.equal(typeof JSON.parse(line).time, 'string');
    assert.ok(!line.includes(SECRET), line);
    assert.ok(!line.includes(token.slice(4)), line);
  });
}

test('every kind of bearer token is redacted; similar text is not', () => {
  for (const kind of ['api_key', 'session', 'agent_token'] as const) {
    const token = newToken(kind);
    assert.equal(withoutSecrets(`"a ${token} b"`), `"a ${token.slice(0, 4)}[redacted] b"`);
  }
  for (const line of [
    '{"level":30,"reqId":"req_0123","path":"/v1/sandboxes/:sandboxId","status":200,"caller":"key_abcdefghijklmnopqrstuvwx"}',
    '{"msg":"the table combat_statistics is there","code":"invalid_request","url":"http://127.0.0.1:4800/x@y"}',
    '{"msg":"basic things","bearer":"of news"}',
  ])
    assert.equal(withoutSecrets(line), line);
});

test('payment provider keys and signing secrets are redacted', () => {
  for (const beginning of ['sk_live_', 'sk_test_', 'rk_live_', 'rk_test_', 'whsec_'])
    assert.equal(withoutSecrets(`"no ${beginning}51AbCdEfGh0123 here"`), `"no ${beginning}[redacted] here"`);
});

test('an error is logged with its type, message, stack, codes and causes', () => {
  const cause = Object.assign(new TypeError('inner'), { code: '23505', table: 'org', constraint: 'org_pkey' });
  const { err } = JSON.parse(written((log) => log.error({ err: new Error('outer', { cause }) })));
  assert.deepEqual(
    [err.type, err.message, err.cause.type, err.cause.message],
    ['Error', 'outer', 'TypeError', 'inner'],
  );
  assert.deepEqual([err.cause.code, err.cause.table, err.cause.constraint], ['23505', 'org', 'org_pkey']);
  assert.match(err.stack, /log\.test\.ts/);
});

test('a cyclic chain of causes is logged to a bounded depth', () => {
  const error = new Error('round');
  error.cause = error;
  assert.ok(written((log) => log.error({ err: error })).length < 100_000);
});
