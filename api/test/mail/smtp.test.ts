// Mail through a real SMTP server in this process: delivery, refusals and their errors, timeouts,
// closed connections.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { afterEach, test } from 'node:test';
import { pino } from 'pino';
import type { SMTPServerOptions } from 'smtp-server';
import { openMailer } from '../../src/mail/mailer.ts';
import type { Mailer } from '../../src/services/context/mail-port.ts';
import { untilTrue } from '../../../os/test/until.ts';
import { startMailServer, type MailServer } from './mail-server.ts';

const MESSAGE = {
  to: 'new.person@example.test',
  subject: 'Zoë invites you',
  text: 'Open this:\n\nhttps://berth.example.test/invitation?token=the-token\n',
  html: '<p>Open <a href="https://berth.example.test/invitation?token=the-token">this</a></p>',
};

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function startServer(options?: SMTPServerOptions): Promise<MailServer> {
  const server = await startMailServer(options);
  closers.push(() => server.close());
  return server;
}

/** Server that accepts connections and passes them to `greet`. */
async function startSocketServer(greet: (socket: Socket) => void): Promise<{ port: number; open: Set<Socket> }> {
  const open = new Set<Socket>();
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
    greet(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(
    () =>
      new Promise((resolve) => {
        for (const socket of open) socket.destroy();
        server.close(() => resolve());
      }),
  );
  return { port: (server.address() as AddressInfo).port, open };
}

const logged: string[] = [];
const log = pino(
  { level: 'trace' },
  new Writable({
    write: (line: Buffer, _encoding, done) => {
      logged.push(line.toString());
      done();
    },
  }),
);

function mailerTo(url: string, deadlineMs?: number): Mailer {
  return openMailer(
    { kind: 'smtp', url, from: 'Berth <berth@example.test>' },
    log,
    deadlineMs === undefined ? {} : { deadlineMs },
  );
}

const failureOf = (sending: Promise<void>): Promise<Error> =>
  sending.then(
    () => assert.fail('the message was taken'),
    (error: unknown) => error as Error,
  );

/** Asserts that an error and its log form reveal neither recipient, message nor password. */
function assertTellsNothing(error: Error): void {
  log.error({ err: error }, 'as a log shows it');
  for (const text of [logged.join(''), error.message, String(error.cause)])
    assert.doesNotMatch(text, /new\.person|the-token|pass%?word-1/i);
}

test('a message arrives complete after login, as text and HTML, and the connection closes', async () => {
  const logins: unknown[] = [];
  const server = await startServer({
    disabledCommands: ['STARTTLS'],
    onAuth: ({ username, password }, _session, done) => {
      logins.push([username, password]);
      done(null, { user: username ?? '' });
    },
  });
  logged.length = 0;
  await mailerTo(`smtp://post%40berth:password%2D1@127.0.0.1:${server.port}`).send(MESSAGE);
  assert.deepEqual(logins, [['post@berth', 'password-1']]);
  const [received] = server.received;
  assert.ok(received !== undefined);
  assert.deepEqual(
    [received.from, received.to, received.user, received.secure],
    ['berth@example.test', [MESSAGE.to], 'post@berth', false],
  );
  assert.match(received.content, /^From: Berth <berth@example\.test>\r$/m);
  assert.match(received.content, /^To: new\.person@example\.test\r$/m);
  assert.match(received.content, /^Subject: =\?UTF-8\?Q\?Zo=C3=AB_invites_you\?=\r$/m);
  assert.match(received.content, /^Auto-Submitted: auto-generated\r$/m);
  assert.match(received.content, /^Content-Type: multipart\/alternative/m);
  assert.match(received.content, /^Content-Type: text\/plain; charset=utf-8\r$/m);
  assert.match(received.content, /^Content-Type: text\/html; charset=utf-8\r$/m);
  await untilTrue('the connection is closed', () => server.connections() === 0);
  assert.match(logged.join(''), new RegExp(`"server":"127\\.0\\.0\\.1:${server.port}"`));
  assert.doesNotMatch(logged.join(''), /new\.person|the-token|password-1/);
});

test('with STARTTLS nothing is sent in the clear, and an untrusted certificate is refused', async () => {
  const server = await startServer({ disabledCommands: ['AUTH'] });
  const refused = await failureOf(mailerTo(`smtp://127.0.0.1:${server.port}`).send(MESSAGE));
  assert.match(refused.message, /certificate/);
  assert.deepEqual(server.received, []);
  await mailerTo(`smtp://127.0.0.1:${server.port}?tls.rejectUnauthorized=false`).send(MESSAGE);
  assert.deepEqual(
    server.received.map(({ secure }) => secure),
    [true],
  );
});

test('a password goes to another host over TLS only, whatever the server offers', async () => {
  let logins = 0;
  const server = await startServer({
    disabledCommands: ['STARTTLS'],
    onAuth: (_auth, _session, done) => {
      logins += 1;
      done(null, { user: 'post' });
    },
  });
  // Address of this host in an unusual form.
  const url = `smtp://post:password-1@[::ffff:127.0.0.1]:${server.port}`;
  const refused = await failureOf(mailerTo(url).send(MESSAGE));
  assert.match(refused.message, /STARTTLS/);
  assert.deepEqual([logins, server.received.length], [0, 0]);
  assertTellsNothing(refused);
  // The operator can allow it.
  await mailerTo(`${url}?ignoreTLS=true`).send(MESSAGE);
  assert.deepEqual([logins, server.received.length], [1, 1]);
});

test('a refused login reports the server and its message, without the password', async () => {
  const server = await startServer({
    disabledCommands: ['STARTTLS'],
    onAuth: (_auth, _session, done) => done(Object.assign(new Error('5.7.8 no such user'), { responseCode: 535 })),
  });
  const refused = await failureOf(mailerTo(`smtp://post:password-1@127.0.0.1:${server.port}`).send(MESSAGE));
  assert.match(
    refused.message,
    new RegExp(
      `^the mail server 127\\.0\\.0\\.1:${server.port} did not accept the message: .*535 5\\.7\\.8 no such user`,
    ),
  );
  assertTellsNothing(refused);
  await untilTrue('the connection is closed', () => server.connections() === 0);
});

test("a refused recipient reports the server's message, without the address", async () => {
  const server = await startServer({
    onRcptTo: ({ address }, _session, done) =>
      done(Object.assign(new Error(`5.1.1 <${address.toUpperCase()}> is unknown here`), { responseCode: 550 })),
  });
  const refused = await failureOf(mailerTo(`smtp://127.0.0.1:${server.port}`).send(MESSAGE));
  assert.match(refused.message, /550 5\.1\.1 <the recipient> is unknown here \[RCPT TO\]$/);
  assertTellsNothing(refused);
  await untilTrue('the connection is closed', () => server.connections() === 0);
});

test('a refusal that quotes the message is reported by its code alone', async () => {
  const server = await startServer({
    onData: (stream, _session, done) => {
      stream.resume();
      stream.on('end', () =>
        done(
          Object.assign(new Error('5.7.1 listed: https://berth.example.test/invitation?token=the-token'), {
            responseCode: 554,
          }),
        ),
      );
    },
  });
  const refused = await failureOf(mailerTo(`smtp://127.0.0.1:${server.port}`).send(MESSAGE));
  assert.match(refused.message, /did not accept the message: Message failed \(554\) \[DATA\]$/);
  assertTellsNothing(refused);
});

test('an absent server is reported as such', async () => {
  const { port } = await startSocketServer((socket) => socket.destroy());
  for (const close of closers.splice(0)) await close();
  const refused = await failureOf(mailerTo(`smtp://127.0.0.1:${port}`).send(MESSAGE));
  assert.match(refused.message, /ECONNREFUSED/);
  assertTellsNothing(refused);
});

test('a server that accepts connections and stays silent times out, and the connection closes', async () => {
  const server = await startSocketServer(() => undefined);
  const sending = mailerTo(`smtp://127.0.0.1:${server.port}`, 200).send(MESSAGE);
  const refused = await failureOf(sending);
  assert.match(refused.message, /did not accept the message within 0\.2 s$/);
  await untilTrue('the connection is closed', () => server.open.size === 0);
});

test('a server that keeps talking without accepting the message times out', async () => {
  const server = await startSocketServer((socket) => {
    const talking = setInterval(() => socket.write('220-still here\r\n'), 10);
    socket.on('close', () => clearInterval(talking));
  });
  const refused = await failureOf(mailerTo(`smtp://127.0.0.1:${server.port}`, 300).send(MESSAGE));
  assert.match(refused.message, /did not accept the message within 0\.3 s$/);
  await untilTrue('the connection is closed', () => server.open.size === 0);
});

test('a server that never acknowledges the message times out', async () => {
  let whole = false;
  const server = await startServer({
    onData: (stream) => {
      stream.resume();
      stream.on('end', () => {
        whole = true;
      });
    },
  });
  const refused = await failureOf(mailerTo(`smtp://127.0.0.1:${server.port}`, 2_000).send(MESSAGE));
  assert.match(refused.message, /did not accept the message within/);
  assert.ok(whole);
  await untilTrue('the connection is closed', () => server.connections() === 0);
});

test('an aborted caller gets its own reason, and the connection closes', async () => {
  const server = await startSocketServer(() => undefined);
  const giveUp = new AbortController();
  const sending = failureOf(mailerTo(`smtp://127.0.0.1:${server.port}`).send(MESSAGE, giveUp.signal));
  await untilTrue('it dials', () => server.open.size === 1);
  giveUp.abort(new Error('stopping'));
  assert.equal((await sending).message, 'stopping');
  await untilTrue('the connection is closed', () => server.open.size === 0);
});

test('an address stays a single recipient, whatever characters it contains', async () => {
  const server = await startServer();
  await mailerTo(`smtp://127.0.0.1:${server.port}`).send({ ...MESSAGE, to: "o'neil+x@example.test" });
  assert.deepEqual(server.received[0]?.to, ["o'neil+x@example.test"]);
});

for (const url of [
  'smtp://',
  'http://user:password-1@mail.example.test',
  'mail.example.test:25',
  'smtps://:password-1@',
  'direct://x',
]) {
  test(`a mail server URL like ${url} stops the start naming the variable, not the URL`, () => {
    assert.throws(
      () => mailerTo(url),
      (error: Error) => /BERTH_SMTP_URL: must be a URL/.test(error.message) && !error.message.includes('password-1'),
    );
  });
}
