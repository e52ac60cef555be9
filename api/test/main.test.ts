// The control plane as a process: commands, start, exit.
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { openDatabase } from '../src/store/database/database.ts';
import { startPostgres, type TestPostgres } from './world/database.ts';
import { StripeServer } from './payment/stripe-server.ts';
import { startExecFront, type ExecFront } from './world/guests/exec-front.ts';
import { untilTrue } from '../../os/test/until.ts';
import { HostStandIn } from './world/host-stand-in.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
const run = promisify(execFile);

let postgres: TestPostgres;
let folder: string;
let host: HostStandIn;
let front: ExecFront;
let environment: Record<string, string>;
before(async () => {
  postgres = await startPostgres();
  folder = await mkdtemp(join(tmpdir(), 'berth-main-'));
  host = new HostStandIn(join(folder, 'behind.sock'));
  await host.start();
  front = await startExecFront(join(folder, 'host.sock'), join(folder, 'behind.sock'));
  await writeFile(join(folder, 'token'), host.token);
  await writeFile(join(folder, 'secret-key'), randomBytes(32).toString('base64'));
  environment = {
    BERTH_DATABASE_URL: await postgres.createDatabase(),
    BERTH_HOST_URL: front.url,
    BERTH_HOST_TOKEN_FILE: join(folder, 'token'),
    BERTH_SECRET_KEY_FILE: join(folder, 'secret-key'),
    BERTH_OUTBOX_FOLDER: join(folder, 'outbox'),
    BERTH_PORT: '0',
  };
});
after(async () => {
  await front.stop();
  await host.stop();
  await postgres.stop();
  await rm(folder, { recursive: true });
});

async function command(...args: string[]): Promise<Record<string, string>> {
  const { stdout } = await run(process.execPath, [MAIN, ...args], { env: environment });
  return JSON.parse(stdout) as Record<string, string>;
}

interface Serving {
  child: ChildProcess;
  url: string;
  lines: string[];
}

async function serve(more: Record<string, string> = {}): Promise<Serving> {
  const child = spawn(process.execPath, [MAIN], {
    env: { ...environment, ...more },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`ended with ${code}: ${lines.join('\n')}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      const said = JSON.parse(line) as { msg: string; port?: number };
      if (said.msg === 'ready' && said.port !== undefined) resolve(said.port);
    });
  });
  return { child, url: `http://127.0.0.1:${port}`, lines };
}

async function stop({ child }: Serving): Promise<number | null> {
  const ended = once(child, 'exit') as Promise<[number | null]>;
  child.kill('SIGTERM');
  return (await ended)[0];
}

test('bootstrap prints a token once; keys create mints more, which the feed records', async () => {
  const first = await command('bootstrap', '--org-name', 'Mine');
  assert.equal(first['created'], true);
  const again = await command('bootstrap');
  assert.deepEqual(again, {
    created: false,
    orgId: first['orgId'],
    projectId: first['projectId'],
    userId: first['userId'],
  });
  const key = await command(
    'keys',
    'create',
    '--name',
    'second',
    '--scopes',
    'sandbox.read,project.read',
    '--expires-in-days',
    '30',
  );
  assert.match(key['token'] ?? '', /^brt_/);
  assert.equal(key['orgId'], first['orgId']);
  const { db } = openDatabase({
    url: environment['BERTH_DATABASE_URL'] ?? '',
    maxConnections: 1,
    statementTimeoutMs: null,
    onIdleError: () => undefined,
  });
  try {
    const row = await db.selectFrom('activity').selectAll().orderBy('at', 'desc').limit(1).executeTakeFirstOrThrow();
    assert.equal(row.kind, 'api_key_created');
    assert.equal(row.actor_kind, 'operator');
    assert.deepEqual(row.details, {
      keyId: key['keyId'],
      name: 'second',
      scopes: ['sandbox.read', 'project.read'],
      createdBy: first['userId'],
    });
  } finally {
    await db.destroy();
  }
});

test('bootstrap prints a welcome link once; owner-link makes another until a password is set', async () => {
  const fresh = { ...environment, BERTH_DATABASE_URL: await postgres.createDatabase() };
  const ask = async (...args: string[]): Promise<unknown> =>
    JSON.parse((await run(process.execPath, [MAIN, ...args], { env: fresh })).stdout);
  await assert.rejects(ask('owner-link'), (error: { code: number; stderr: string }) => {
    assert.equal(error.code, 1);
    assert.match(error.stderr, /^berth-api: there is no org yet: start the service once\n$/);
    return true;
  });
  const first = (await ask('bootstrap')) as Record<string, string>;
  assert.match(first['welcomePath'] ?? '', /^\/welcome\?token=[\w-]{43}$/);
  const { path, ...link } = (await ask('owner-link')) as Record<string, string>;
  assert.deepEqual(link, { kind: 'welcome', email: 'owner@localhost', minutes: 7 * 24 * 60 });
  assert.match(path ?? '', /^\/welcome\?token=[\w-]{43}$/);
  assert.notEqual(path, first['welcomePath']);
});

test('plans set activates a catalogue plan for an org, and the feed has both plans', async () => {
  const { orgId } = await command('bootstrap');
  const file = join(folder, 'plans.json');
  const starter = {
    id: 'starter',
    name: 'Starter',
    tier: 'standard',
    concurrentSandboxes: 1,
    largestSize: 'small',
    ephemeralSessionSeconds: 60,
  };
  await writeFile(file, JSON.stringify({ plans: [starter] }));
  const set = async (plan: string): Promise<unknown> => {
    const changed = { ...environment, BERTH_PLANS_FILE: file };
    return JSON.parse(
      (await run(process.execPath, [MAIN, 'plans', 'set', '--org', orgId ?? '', '--plan', plan], { env: changed }))
        .stdout,
    );
  };
  const [first, second] = [
    { plan: 'self-hosted', status: 'active' },
    { plan: 'starter', status: 'active' },
  ];
  assert.deepEqual(await set('starter'), { orgId, plan: 'starter', before: first });
  // Setting it again changes nothing.
  assert.deepEqual(await set('starter'), { orgId, plan: 'starter', before: second });
  const { db } = openDatabase({
    url: environment['BERTH_DATABASE_URL'] ?? '',
    maxConnections: 1,
    statementTimeoutMs: null,
    onIdleError: () => undefined,
  });
  try {
    const row = await db.selectFrom('subscription').selectAll().executeTakeFirstOrThrow();
    assert.deepEqual([row.org_id, row.plan, row.status], [orgId, 'starter', 'active']);
    await db.updateTable('subscription').set({ status: 'canceled' }).execute();
    assert.deepEqual(await set('self-hosted'), {
      orgId,
      plan: 'self-hosted',
      before: { plan: 'starter', status: 'canceled' },
    });
    assert.equal((await db.selectFrom('subscription').selectAll().executeTakeFirstOrThrow()).status, 'active');
    const told = await db
      .selectFrom('activity')
      .select(['actor_kind', 'details'])
      .where('kind', '=', 'plan_changed')
      .orderBy('at')
      .execute();
    assert.deepEqual(told, [
      { actor_kind: 'operator', details: { from: first, to: 'starter' } },
      { actor_kind: 'operator', details: { from: { plan: 'starter', status: 'canceled' }, to: 'self-hosted' } },
    ]);
  } finally {
    await db.destroy();
  }
});

test('a wrong command, option or environment exits with 1 and one line naming the fault', async () => {
  for (const [args, changed, message] of [
    [['dance'], {}, /unknown command dance/],
    [['keys', 'create', '--scopes', 'everything'], {}, /--scopes: everything is not a permission; known: /],
    [['keys', 'create', '--expires-in-days', '366'], {}, /--expires-in-days must be an integer from 1 to 365/],
    [['keys', 'create', '--org', 'org_nobody'], {}, /there is no org org_nobody/],
    [['owner-link', 'now'], {}, /Unexpected argument 'now'/],
    [
      ['plans', 'set', '--plan', 'gold'],
      {},
      /there is no plan 'gold' in the catalogue \(BERTH_PLANS_FILE\); known: self-hosted/,
    ],
    [['plans', 'set'], {}, /--plan is missing; known: self-hosted/],
    [['plans', 'set', '--org', 'org_nobody', '--plan', 'self-hosted'], {}, /there is no org org_nobody/],
    [['serve'], { BERTH_HOST_URL: '' }, /BERTH_HOST_URL/],
  ] as const) {
    await assert.rejects(
      run(process.execPath, [MAIN, ...args], { env: { ...environment, ...changed } }),
      (error: { code: number; stderr: string }) => {
        assert.equal(error.code, 1);
        assert.match(error.stderr, message);
        assert.equal(error.stderr.trim().split('\n').length, 1);
        return true;
      },
    );
  }
});

test("serve runs a sandbox's lifecycle, logs no secrets, drains and exits with 0 on SIGTERM", async () => {
  const { token, orgId } = await command('keys', 'create');
  const { projectId } = await command('bootstrap');
  const serving = await serve();
  const send = async (path: string, body?: object): Promise<Record<string, Record<string, string>>> => {
    const response = await fetch(serving.url + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await response.json()) as Record<string, Record<string, string>>;
  };
  const { sandbox } = await send(`/v1/orgs/${orgId}/sandboxes`, { agent: 'agent_one', projectId });
  // On a loaded host the response precedes the VM's creation.
  await untilTrue(
    'it is ready',
    async () => (await send(`/v1/sandboxes/${sandbox?.['id']}`))['sandbox']?.['status'] === 'ready',
  );
  const started = Promise.withResolvers<void>();
  const finish = Promise.withResolvers<void>();
  front.exec = async ({ command: text }) => {
    started.resolve();
    await finish.promise;
    return { exitCode: 0, stdout: text, stderr: '', truncated: false, timedOut: false };
  };
  const exec = send(`/v1/sandboxes/${sandbox?.['id']}/exec`, { command: 'still running' });
  await started.promise;
  const ended = stop(serving);
  finish.resolve();
  assert.equal((await exec)['stdout'], 'still running');
  assert.equal(await ended, 0);
  const log = serving.lines.join('\n');
  assert.match(log, /"path":"\/v1\/sandboxes\/:sandboxId\/exec","status":200/);
  for (const secret of [token ?? '', host.token, 'still running']) assert.equal(log.includes(secret), false);
  assert.equal(host.alive().length, 1, 'a stop leaves the machines running');
});

test('serve exits with 1 if its port is taken, even after its workers started', async () => {
  const serving = await serve();
  const ended = run(process.execPath, [MAIN], {
    env: { ...environment, BERTH_PORT: new URL(serving.url).port },
    timeout: 30_000,
  });
  await assert.rejects(ended, (error: { code: number; stderr: string }) => {
    assert.equal(error.code, 1);
    assert.match(error.stderr, /^berth-api: .*EADDRINUSE/);
    return true;
  });
  assert.equal(await stop(serving), 0);
});

test('a second serve on the same database continues the work of the first', async () => {
  const serving = await serve();
  const { token, orgId } = await command('keys', 'create');
  const response = await fetch(`${serving.url}/v1/orgs/${orgId}/sandboxes`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const { sandboxes } = (await response.json()) as { sandboxes: { status: string }[] };
  assert.deepEqual(
    sandboxes.map(({ status }) => status),
    ['ready'],
  );
  assert.equal(await stop(serving), 0);
});

test("no operator command loads the payment provider's client", async () => {
  const told = `process.stderr.write('loaded ' + url + '\\n')`;
  const load = `load(url, context, next) { ${told}; return next(url, context); }`;
  const hook = `import { registerHooks } from 'node:module'; registerHooks({ ${load} });`;
  const ended = run(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, MAIN, 'unheard-of'],
    {
      env: environment,
      maxBuffer: 64 * 1024 * 1024,
    },
  );
  await assert.rejects(ended, ({ stderr }: { stderr: string }) => {
    assert.match(stderr, /^loaded .*\/services\/billing\/billing\.ts$/m, 'what is loaded is seen');
    assert.doesNotMatch(stderr, /^loaded .*(\/node_modules\/stripe\/|\/payment\/stripe\.ts)/m);
    return true;
  });
});

test('serve sells plans with secrets from files: a reported purchase is active', async () => {
  const stripe = new StripeServer();
  await stripe.start();
  const files = {
    key: join(folder, 'stripe-key'),
    webhook: join(folder, 'stripe-webhook'),
    plans: join(folder, 'sold.json'),
  };
  await writeFile(files.key, `${stripe.secretKey}\n`);
  await writeFile(files.webhook, `${stripe.webhookSecret}\n`);
  const sold = {
    id: 'sold',
    name: 'Sold',
    tier: 'standard',
    concurrentSandboxes: 5,
    largestSize: null,
    ephemeralSessionSeconds: null,
  };
  await writeFile(files.plans, JSON.stringify({ plans: [{ ...sold, priceId: 'price_sold' }] }));
  const { orgId, token } = await command('bootstrap');
  const key = token ?? (await command('keys', 'create', '--name', 'billing'))['token'];
  const serving = await serve({
    BERTH_STRIPE_SECRET_KEY_FILE: files.key,
    BERTH_STRIPE_WEBHOOK_SECRET_FILE: files.webhook,
    BERTH_STRIPE_API_URL: stripe.url,
    BERTH_PLANS_FILE: files.plans,
  });
  try {
    const bought = stripe.subscribe({ price: 'price_sold', metadata: { berth_org_id: orgId ?? '' } });
    const { body, signature } = stripe.event('customer.subscription.created', bought);
    const told = await fetch(`${serving.url}/billing/stripe`, {
      method: 'POST',
      body,
      headers: { 'stripe-signature': signature },
    });
    assert.deepEqual([told.status, await told.json()], [200, { received: true }]);
    const answer = await fetch(`${serving.url}/v1/orgs/${orgId}/subscription`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const { subscription } = (await answer.json()) as { subscription: { plan: { id: string }; provider: string } };
    assert.deepEqual([subscription.plan.id, subscription.provider], ['sold', 'stripe']);
  } finally {
    assert.equal(await stop(serving), 0);
    await stripe.stop();
  }
  const log = serving.lines.join('\n');
  for (const secret of [stripe.secretKey, stripe.webhookSecret])
    assert.ok(!log.includes(secret), 'a secret is in the log');
});
