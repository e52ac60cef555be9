// Mail without a mail server: files in a folder.
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { after, before, test } from 'node:test';
import { pino } from 'pino';
import { openMailer } from '../../src/mail/mailer.ts';
import type { Mailer } from '../../src/services/context/mail-port.ts';

const MESSAGE = {
  to: 'new.person@example.test',
  subject: 'You are invited',
  text: 'https://berth.example.test/invitation?token=the-token\n',
  html: '<a href="https://berth.example.test/invitation?token=the-token">Accept</a>',
};

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'berth-outbox-'));
});
after(() => rm(root, { recursive: true }));

function mailerInto(folder: string, logged: string[] = []): Mailer {
  const into = new Writable({
    write: (line: Buffer, _encoding, done) => {
      logged.push(line.toString());
      done();
    },
  });
  return openMailer({ kind: 'outbox', folder, from: 'Berth <berth@localhost>' }, pino({ level: 'trace' }, into));
}

test('messages and their folder are accessible to their owner only', async () => {
  const folder = join(root, 'made', 'outbox');
  await mailerInto(folder).send(MESSAGE);
  const [name = '', ...more] = await readdir(folder);
  assert.deepEqual(more, []);
  assert.match(name, /^\d{4}-\d{2}-\d{2}T\d{6}\.\d{3}Z-[0-9a-f]{8}\.eml$/);
  assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600);
  assert.equal((await stat(folder)).mode & 0o777, 0o700);
  const content = await readFile(join(folder, name), 'utf8');
  assert.match(content, /^From: Berth <berth@localhost>$/m);
  assert.match(content, /^To: new\.person@example\.test$/m);
  assert.match(content, /^Subject: You are invited$/m);
  assert.match(
    content,
    /^https:\/\/berth\.example\.test\/invitation\?token=3Dthe-token$|^https:\/\/.*token=the-token$/m,
  );
  assert.match(content, /^Content-Type: text\/html/m);
});

test('the log names the file of a message, never its content or recipient', async () => {
  const folder = join(root, 'logged');
  const logged: string[] = [];
  await mailerInto(folder, logged).send(MESSAGE);
  const [name = ''] = await readdir(folder);
  assert.equal(logged.length, 1);
  assert.equal((JSON.parse(logged[0] ?? '') as { file: string }).file, join(folder, name));
  assert.doesNotMatch(logged.join(''), /the-token|new\.person|You are invited/);
});

test('concurrent messages become complete, separate files', async () => {
  const folder = join(root, 'many');
  const mailer = mailerInto(folder);
  await Promise.all(
    Array.from({ length: 30 }, (_, index) => mailer.send({ ...MESSAGE, to: `person-${index}@example.test` })),
  );
  const files = await Promise.all((await readdir(folder)).map((name) => readFile(join(folder, name), 'utf8')));
  const recipients = files.map((content) => /^To: person-(\d+)@/m.exec(content)?.[1]).map(Number);
  assert.deepEqual(
    recipients.toSorted((a, b) => a - b),
    [...Array.from({ length: 30 }).keys()],
  );
  const ended = files.filter((content) => /^--[^\n]+--\n$/m.test(content));
  assert.equal(ended.length, 30);
});

test('an unwritable folder is an error and leaves nothing behind', async () => {
  const file = join(root, 'in-the-way');
  await writeFile(file, '');
  await assert.rejects(mailerInto(join(file, 'outbox')).send(MESSAGE), /ENOTDIR|EEXIST/);
  await assert.rejects(mailerInto(file).send(MESSAGE), /EEXIST|ENOTDIR/);
  assert.equal(await readFile(file, 'utf8'), '');
});

test('an aborted caller has no file written', async () => {
  const folder = join(root, 'given-up');
  await assert.rejects(mailerInto(folder).send(MESSAGE, AbortSignal.abort(new Error('stopping'))), /stopping/);
  await assert.rejects(readdir(folder), /ENOENT/);
});
