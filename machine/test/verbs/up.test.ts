import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { isSame } from '@berth/os/process-identity.ts';
import type { ProcessIdentity } from '@berth/os/process-identity.ts';
import { processesWith } from '../../../os/test/open-files.ts';
import { socketDatabaseUrl } from '../../src/roles/database/connection.ts';
import { TestInstance, runVerb } from './berth-program.ts';

const run = promisify(execFile);
const DEADLINE_MS = 60_000;

/** Polls until `look` returns a value. */
async function eventually<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const deadline = performance.now() + DEADLINE_MS;
  for (;;) {
    const seen = await look();
    if (seen !== null) return seen;

    assert.ok(performance.now() < deadline, `${what} within ${DEADLINE_MS / 1000} s`);
    await delay(50);
  }
}

let one: TestInstance;
let two: TestInstance;
let key: string;
let sandboxId: string;

before(async () => {
  one = await TestInstance.make();
  two = await TestInstance.make();
  await one.up();
  key = one.greeted('API key');
});
after(async () => {
  await one.remove(key);
  await two.remove(null);
});

async function exec(command: string): Promise<Record<string, unknown>> {
  const { status, body } = await one.call('POST', `/v1/sandboxes/${sandboxId}/exec`, key, { command });
  assert.equal(status, 200, JSON.stringify(body));
  return body;
}

test('the first start prints a shell line that creates a sandbox and runs a command in it', async () => {
  const line = one.output.split('\n').find((text) => text.includes('SANDBOX='));
  assert.ok(line !== undefined, one.output);
  const { stdout } = await run('sh', ['-c', `${line}; echo; echo $SANDBOX`], { timeout: DEADLINE_MS });
  const [answer = '', id = ''] = stdout.trim().split('\n');
  assert.match((JSON.parse(answer) as { stdout: string }).stdout, /^Linux .*\nuid=\d+\(berth\)/);
  sandboxId = id;
});

test('every suggested command names the data folder', () => {
  const hints = one.output.match(/\.\/berth (?!shell )[a-z].*/g) ?? [];
  assert.equal(hints.length, 3);
  for (const hint of hints) assert.match(hint, new RegExp(`^\\./berth [a-z -]+ --data-dir ${one.folder} `));
});

test('services run unprivileged: database and API as their user, and secrets are closed', async () => {
  const { database, api } = await one.services();
  for (const service of [database, api]) {
    const { stdout } = await run('grep', ['-E', '^(Uid|CapEff|CapBnd|NoNewPrivs):', `/proc/${service?.pid}/status`]);
    assert.doesNotMatch(stdout, /^Uid:\s0\s/m);
    assert.match(stdout, /CapEff:\s0+\nCapBnd:\s0+\nNoNewPrivs:\s1/);
  }
  // The loader only warns of a missing library.
  const { stdout: mapped } = await run('grep', ['-c', 'libjemalloc', `/proc/${api?.pid}/maps`]);
  assert.notEqual(mapped.trim(), '0');
  const { stdout } = await run('stat', ['-c', '%a %u', `${one.folder}/secrets`]);
  assert.equal(stdout.trim(), '700 0');
});

test('a file that the caller of up left open is open in no service or sandbox', () => {
  assert.deepEqual(processesWith(one.callersFile), []);
});

test('a second up reports the running instance, and refuses another port for it', async () => {
  const same = await runVerb('up', ...one.flags);
  assert.equal(same.code, 0, same.stderr);
  assert.match(same.stderr, new RegExp(`already runs with ${one.folder} \\(pid \\d+\\): ${one.url}`));
  const other = await runVerb('up', '--data-dir', one.folder, '--port', String(two.port), '--driver', 'fake');
  assert.equal(other.code, 1);
  assert.match(other.stderr, /already runs .*, not http.*\n.*another --data-dir/);
});

test('a taken port is named with its process and the flag for another', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(two.port, '127.0.0.1', resolve));
  try {
    const { code, stderr } = await runVerb('up', ...two.flags);
    assert.equal(code, 1);
    assert.match(
      stderr,
      new RegExp(`port ${two.port} on 127\\.0\\.0\\.1 is taken by pid ${process.pid} \\(.*\\)\\n.*--port`),
    );
  } finally {
    await new Promise((resolve) => taken.close(resolve));
  }
});

test('two instances with separate folders and ports run side by side without interference', async () => {
  await two.up();
  const secondKey = two.greeted('API key');
  assert.equal((await one.call('GET', '/v1/me', key)).status, 200);
  assert.equal((await two.call('GET', '/v1/me', secondKey)).status, 200);
  assert.equal((await two.call('GET', '/v1/me', key)).status, 401);
  assert.equal((await one.call('GET', '/v1/me', secondKey)).status, 401);
  const stopped = await runVerb('down', '--data-dir', two.folder);
  assert.equal(stopped.code, 0, stopped.stderr);
  assert.match(stopped.stderr, /Stopped\. No sandboxes were running\./);
  assert.equal(await two.ended(), 0);
  assert.equal((await one.call('GET', '/v1/me', key)).status, 200);
});

for (const service of ['database', 'host', 'api']) {
  test(`kill -9 of the ${service} loses nothing: it restarts and the sandbox responds`, async () => {
    await exec(`echo ${service} > /code/before`);
    const victim = (await one.services())[service];
    assert.ok(victim !== undefined);
    process.kill(victim.pid, 'SIGKILL');
    await eventually(`a new ${service}`, async () => {
      const now = (await one.services())[service] as ProcessIdentity;
      return now.pid !== victim.pid && (await isSame(now)) ? now : null;
    });
    await eventually('an answer of the sandbox', async () => {
      const answer = await one
        .call('POST', `/v1/sandboxes/${sandboxId}/exec`, key, { command: 'cat /code/before' })
        .catch(() => null);
      return answer?.status === 200 && answer.body['stdout'] === `${service}\n` ? true : null;
    });
    assert.match(one.output, new RegExp(`! ${service} exited \\(signal SIGKILL\\)`));
  });
}

test('a key made on the host while the service runs is accepted and is in the activity feed', async () => {
  const made = await runVerb('keys', 'create', '--name', 'second', '--data-dir', one.folder);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /^brt_[0-9A-Za-z]{38}\n$/);
  assert.equal((await one.call('GET', '/v1/me', made.stdout.trim())).status, 200);
  const client = new Client(socketDatabaseUrl(`${one.folder}/postgres/socket`));
  await client.connect();
  try {
    const keyId = /key_[a-z2-7]+/.exec(made.stderr)?.[0];
    const { rows } = await client.query('select kind from activity where details::text like $1', [`%${keyId}%`]);
    assert.equal(rows.length, 1, `one row names ${keyId}`);
  } finally {
    await client.end();
  }
});

/** Sends a form as a page of the service does. */
async function post(path: string, fields: Record<string, string>): Promise<Response> {
  return await fetch(one.url + path, {
    method: 'POST',
    body: new URLSearchParams(fields),
    redirect: 'manual',
    signal: AbortSignal.timeout(30_000),
  });
}

test('up prints the preview host, and preview links use it', async () => {
  const pattern = /^ {2}previews +(\S.*)$/m.exec(one.output)?.[1] ?? '';
  const { status, body } = await one.call('POST', `/v1/sandboxes/${sandboxId}/previews`, key, { port: 3000 });
  assert.equal(status, 201, JSON.stringify(body));
  const { origin } = new URL((body['preview'] as { url: string }).url);
  assert.equal(
    origin,
    pattern.replace('<port>', '3000').replace('<sandbox id without sbx_>', sandboxId.slice('sbx_'.length)),
  );
});

test('the first start prints a one-time link for the owner; owner-link makes more, no log has a token', async () => {
  const links = [/^ {2}sign in +(http\S+)$/m.exec(one.output)?.[1] ?? ''];
  assert.match(links[0] ?? '', new RegExp(`^${one.url}/welcome\\?token=[\\w-]{43}$`));
  assert.match(
    one.output,
    new RegExp(`\\(works once; \\./berth owner-link --data-dir ${one.folder} creates another\\)`),
  );
  assert.equal((await fetch(links[0] ?? '')).status, 200);

  const another = await runVerb('owner-link', '--data-dir', one.folder);
  assert.equal(another.code, 0, another.stderr);
  assert.match(
    another.stderr,
    /to choose an address and a password \(works once, within 7 days; earlier links no longer work\)/,
  );
  links.push(another.stdout.trim());
  assert.match(another.stdout, new RegExp(`^${one.url}/welcome\\?token=[\\w-]{43}\n$`));
  assert.equal((await fetch(links[0] ?? '')).status, 410);

  const password = 'a boat in the harbour';
  const token = new URL(links[1] ?? '').searchParams.get('token') ?? '';
  const made = await post('/welcome', {
    token,
    email: 'owner@example.test',
    name: 'Olive',
    password,
    repeat: password,
  });
  assert.equal(made.status, 303, await made.text());
  assert.equal((await fetch(links[1] ?? '')).status, 410);
  assert.equal((await post('/sign-in', { email: 'owner@example.test', password })).status, 303);

  const reset = await runVerb('owner-link', '--data-dir', one.folder);
  assert.equal(reset.code, 0, reset.stderr);
  assert.match(
    reset.stderr,
    /The owner's account owner@example\.test has a password\. .* \(works once, within 30 minutes; /,
  );
  links.push(reset.stdout.trim());
  assert.match(reset.stdout, new RegExp(`^${one.url}/reset-password\\?token=[\\w-]{43}\n$`));
  assert.equal((await fetch(links[2] ?? '')).status, 200);

  const logs = await Promise.all(
    (await readdir(`${one.folder}/log`)).map((name) => readFile(`${one.folder}/log/${name}`, 'utf8')),
  );
  assert.ok(logs.some((log) => log.includes('"path":"/welcome"')));
  for (const secret of [...links.map((link) => new URL(link).searchParams.get('token') ?? link), password]) {
    assert.ok(secret.length > 20);
    assert.ok(logs.every((log) => !log.includes(secret)));
  }
});

test('without a mail server mail goes to a private file in the data folder that the log names', async () => {
  assert.equal((await post('/forgot-password', { email: 'owner@example.test' })).status, 200);
  const outbox = `${one.folder}/outbox`;
  const name = await eventually(
    'a message',
    async () => (await readdir(outbox)).find((file) => /^[^.].*\.eml$/.test(file)) ?? null,
  );
  assert.equal((await stat(`${outbox}/${name}`)).mode & 0o777, 0o600);
  assert.match(await readFile(`${outbox}/${name}`, 'utf8'), /^To: owner@example\.test$/m);
  await eventually('a line in the log', async () =>
    (await readFile(`${one.folder}/log/api.log`, 'utf8')).includes(`${outbox}/${name}`) ? true : null,
  );
});

test('kill -9 of the supervisor ends the services but no sandbox; the next up takes over', async () => {
  await exec('echo kept > /code/before');
  const services = await one.services();
  one.kill('SIGKILL');
  await one.ended();
  for (const [name, service] of Object.entries(services))
    await eventually(`the end of the ${name}`, async () => ((await isSame(service)) ? null : true));

  await one.up();
  assert.equal((await exec('cat /code/before'))['stdout'], 'kept\n');
});

test('down waits for every process, lists sandboxes that keep running, loses nothing, can be repeated', async () => {
  const services = await one.services();
  const stopped = await runVerb('down', '--data-dir', one.folder);
  assert.equal(stopped.code, 0, stopped.stderr);
  assert.ok(
    stopped.stderr.includes(
      `Stopped. 1 sandbox keeps running; the next ./berth up --data-dir ${one.folder} takes over.`,
    ),
    stopped.stderr,
  );
  for (const service of Object.values(services)) assert.equal(await isSame(service), false);

  assert.equal(await one.ended(), 0);
  const again = await runVerb('down', '--data-dir', one.folder);
  assert.equal(again.code, 0);
  assert.match(again.stderr, /does not run/);

  const offline = await runVerb('keys', 'create', '--data-dir', one.folder);
  assert.equal(offline.code, 0, offline.stderr);
  const link = await runVerb('owner-link', '--data-dir', one.folder);
  assert.equal(link.code, 0, link.stderr);
  assert.match(link.stderr, /The service is not running/);
  assert.match(link.stdout, new RegExp(`^${one.url}/reset-password\\?token=`));

  await one.up();
  assert.doesNotMatch(one.output, /brt_|token=/);
  assert.equal((await exec('cat /code/before'))['stdout'], 'kept\n');
  assert.equal((await one.call('GET', '/v1/me', offline.stdout.trim())).status, 200);
});

test('down --sleep stops the processes of sandboxes, and the next up wakes them as they were', async () => {
  const { stdout: pid } = await exec('nohup sleep infinity > /dev/null 2>&1 & echo $!');
  const slept = await runVerb('down', '--sleep', '--data-dir', one.folder);
  assert.equal(slept.code, 0, slept.stderr);
  assert.match(slept.stderr, /Stopped\. Sandboxes sleep; the next \.\/berth up .* wakes them\./);
  assert.equal(await one.ended(), 0);
  await one.up();
  await eventually('the process in the sandbox', async () => {
    const path = `/v1/sandboxes/${sandboxId}/exec`;
    const { status, body } = await one.call('POST', path, key, { command: `kill -0 ${String(pid)}` });
    return status === 200 && body['exitCode'] === 0 ? true : null;
  });
});

test('Ctrl-C stops everything in order', async () => {
  const services = await one.services();
  one.kill('SIGINT');
  assert.equal(await one.ended(), 0);
  for (const service of Object.values(services)) assert.equal(await isSame(service), false);

  await one.up();
});
