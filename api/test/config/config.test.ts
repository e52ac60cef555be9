// Configuration of the control plane by environment variables.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { DEFAULT_MACHINE_RATES } from '@berth/contract/billing/machine-rates.ts';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import { readDatabaseConfig, readServeConfig } from '../../src/config/config.ts';
import { enoughIn } from './enough.ts';
let folder: string;
let enough: Record<string, string>;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-config-'));
  await writeFile(join(folder, 'empty'), '\n');
  await writeFile(join(folder, 'short-key'), randomBytes(31).toString('base64'));
  await writeFile(join(folder, 'smtp-url'), 'smtps://user:secret@mail.example.test\n');
  enough = await enoughIn(folder);
});
after(() => rm(folder, { recursive: true }));

test('missing variables get their defaults', () => {
  const { secretKey, ...others } = readServeConfig(enough);
  assert.equal(secretKey.derive('sign-in').byteLength, 32);
  assert.deepEqual(others, {
    databaseUrl: 'postgres://x',
    logLevel: 'info',
    listenAddress: '127.0.0.1',
    port: 4_800,
    databaseConnections: 20,
    hostUrl: 'unix:/run/host.sock',
    hostToken: 'secret',
    secretFiles: { secretKey: join(folder, 'secret-key'), hostToken: join(folder, 'token') },
    plans: new Map([['self-hosted', SELF_HOSTED_PLAN]]),
    settings: {
      publicUrl: 'http://127.0.0.1:4800',
      previewUrl: 'http://localhost:4800',
      previewCookies: 'all',
      consoleFolder: null,
      requestsPerMinute: 600,
      orgRequestsPerMinute: 6_000,
      bodiesInFlightMib: 128,
      streams: 4_096,
      visitors: { requestsPerMinute: 6_000, connections: 128 },
      shares: { orgsPerUser: 50, projectsPerOrg: 1_000, apiKeysPerOrg: 1_000, agentTokensPerUser: 100 },
      sessionTokenMinutes: 60,
      reauthenticateMinutes: 10,
      signUp: 'invited',
      signUpsPerHour: { address: 10, domain: 200 },
      capGraceSeconds: 300,
      trustedProxies: [],
      git: { baseUrl: 'https://github.com', allowedOrigins: [], cloneTimeoutSeconds: 1_800, cloneMaxMib: 10_240 },
      modelEndpoints: { openai: ['https://api.openai.com'], anthropic: ['https://api.anthropic.com'] },
      machineRates: DEFAULT_MACHINE_RATES,
    },
    mail: { kind: 'outbox', folder: 'outbox', from: 'Berth <berth@localhost>' },
    oidc: null,
    stripe: null,
    crashAt: null,
  });
});

test("an org's default rate is ten times a credential's; its own variable overrides it", () => {
  const read = (environment: Record<string, string>): number =>
    readServeConfig({ ...enough, ...environment }).settings.orgRequestsPerMinute;
  assert.equal(read({ BERTH_REQUESTS_PER_MINUTE: '1000000' }), 10_000_000);
  assert.equal(read({ BERTH_REQUESTS_PER_MINUTE: '50', BERTH_ORG_REQUESTS_PER_MINUTE: '70' }), 70);
});

test('DATABASE_URL is the fallback of BERTH_DATABASE_URL; an empty variable counts as unset', () => {
  const read = (own: string): string =>
    readDatabaseConfig({ DATABASE_URL: 'postgres://y', BERTH_DATABASE_URL: own }).databaseUrl;
  assert.deepEqual([read(''), read('postgres://x')], ['postgres://y', 'postgres://x']);
});

for (const [variable, value] of Object.entries({
  BERTH_DATABASE_URL: 'mysql://x',
  BERTH_PORT: 'http',
  BERTH_HOST_URL: 'host:80',
  BERTH_LOG_LEVEL: 'loud',
  BERTH_DATABASE_CONNECTIONS: '0',
  BERTH_REQUESTS_PER_MINUTE: '0',
  BERTH_ORG_REQUESTS_PER_MINUTE: '10000001',
  BERTH_BODIES_IN_FLIGHT_MIB: '31',
  BERTH_API_STREAMS: '0',
  BERTH_VISITOR_REQUESTS_PER_MINUTE: '0',
  BERTH_VISITOR_CONNECTIONS: 'all',
  BERTH_ORGS_PER_USER: '-1',
  BERTH_PROJECTS_PER_ORG: '0',
  BERTH_API_KEYS_PER_ORG: 'many',
  BERTH_SESSION_TOKEN_MINUTES: '1441',
  BERTH_REAUTHENTICATE_MINUTES: '43201',
  BERTH_CAP_GRACE_SECONDS: '86401',
  BERTH_SIGN_UP: 'everybody',
  BERTH_SIGN_UPS_PER_ADDRESS: '0',
  BERTH_SIGN_UPS_PER_DOMAIN: '100001',
  BERTH_CLONE_TIMEOUT_SECONDS: '86401',
  BERTH_CLONE_MAX_MIB: '0',
  BERTH_SMTP_URL: 'http://mail.example.test',
  BERTH_OIDC_ISSUER: 'id.example.test',
})) {
  test(`a wrong ${variable} is refused by name`, () => {
    assert.throws(() => readServeConfig({ ...enough, [variable]: value }), new RegExp(variable));
  });
}

test('a host daemon beyond this machine needs consent to plain http', () => {
  const read = (url: string, more: Record<string, string> = {}): string =>
    readServeConfig({ ...enough, BERTH_HOST_URL: url, ...more }).hostUrl;
  for (const near of ['http://127.0.0.1:4801', 'http://[::1]:4801', 'http://localhost:4801'])
    assert.equal(read(near), near);
  for (const far of ['http://10.0.0.5:4801', 'http://127.0.0.1.example.test', 'http://127.1@10.0.0.5:4801']) {
    assert.throws(() => read(far), /BERTH_HOST_URL: .* is plain http beyond this machine: .*BERTH_HOST_PLAINTEXT=1/);
    assert.throws(() => read(far, { BERTH_HOST_PLAINTEXT: '0' }), /plain http/);
    assert.equal(read(far, { BERTH_HOST_PLAINTEXT: '1' }), far);
  }
  assert.throws(() => read('http://[::1'), /must be unix:/);
  assert.throws(() => read('unix:/x', { BERTH_HOST_PLAINTEXT: 'yes' }), /BERTH_HOST_PLAINTEXT/);
});

test('the public URL must be an http origin; anything else is refused by name', () => {
  const read = (url: string): string => readServeConfig({ ...enough, BERTH_PUBLIC_URL: url }).settings.publicUrl;
  assert.equal(read('https://Berth.Example.test/'), 'https://berth.example.test');
  assert.equal(read('http://10.0.0.5:8080'), 'http://10.0.0.5:8080');
  for (const wrong of [
    'ftp://x.test',
    'berth.example.test',
    'https://x.test/berth',
    'https://x.test/?a=b',
    'https://me@x.test',
    'https://x.test/#y',
  ])
    assert.throws(() => read(wrong), /BERTH_PUBLIC_URL/, wrong);
});

test('apps receive proven cookies only where siblings could set others', () => {
  const read = (environment: Record<string, string>): string =>
    readServeConfig({ ...enough, ...environment }).settings.previewCookies;
  const own = { BERTH_PUBLIC_URL: 'https://berth.example.test' };
  const [plain, tls] = ['http', 'https'].map((scheme) => ({
    ...own,
    BERTH_PREVIEW_URL: `${scheme}://previews.example.com`,
  }));
  assert.equal(read({}), 'all');
  assert.equal(read({ BERTH_PREVIEW_URL: 'https://localhost:8443' }), 'all');
  assert.equal(read({ ...plain }), 'all');
  assert.equal(read({ ...tls }), 'proven');
  assert.equal(read({ ...tls, BERTH_PREVIEW_COOKIES: 'all' }), 'all');
  assert.throws(
    () => read({ ...plain, BERTH_PREVIEW_COOKIES: 'proven' }),
    /BERTH_PREVIEW_COOKIES: proven requires an https/,
  );
  assert.throws(() => read({ ...tls, BERTH_PREVIEW_COOKIES: 'none' }), /BERTH_PREVIEW_COOKIES/);
});

test('previews default to localhost; a host that would share cookies stops the start', () => {
  const read = (environment: Record<string, string>): string =>
    readServeConfig({ ...enough, ...environment }).settings.previewUrl;
  assert.equal(read({ BERTH_PORT: '80' }), 'http://localhost');
  assert.equal(read({ BERTH_PUBLIC_URL: 'http://10.0.0.5:8080' }), 'http://localhost:8080');
  assert.equal(read({ BERTH_PUBLIC_URL: 'https://berth.example.test' }), 'http://localhost:4800');
  const own = { BERTH_PUBLIC_URL: 'https://berth.example.test' };
  assert.equal(
    read({ ...own, BERTH_PREVIEW_URL: 'https://Previews.Example.test:8443/' }),
    'https://previews.example.test:8443',
  );
  for (const [wrong, why] of [
    ['ftp://previews.example.test', /must be the http or https URL/],
    ['previews.example.test', /must be the http or https URL/],
    ['https://previews.example.test/x', /must have no path/],
    ['https://me@previews.example.test', /must have no path, query or user name/],
    ['https://10.0.0.5', /a host name, not an address/],
    ['https://berth.example.test', /another host than the public URL \(https:\/\/berth\.example\.test\)/],
    ['https://previews.berth.example.test', /a subdomain of the public URL's host/],
    ['https://example.test', /a parent domain of the public URL's host/],
  ] as const) {
    const told = (error: Error): boolean => /BERTH_PREVIEW_URL: /.test(error.message) && why.test(error.message);
    assert.throws(() => read({ ...own, BERTH_PREVIEW_URL: wrong }), told, wrong);
  }
});

test('trusted proxies are addresses and networks; names and too wide networks are refused', () => {
  const read = (proxies: string): readonly string[] =>
    readServeConfig({ ...enough, BERTH_TRUSTED_PROXIES: proxies }).settings.trustedProxies;
  assert.deepEqual(read('10.0.0.5, 10.0.0.0/8,::1 ,fd00::/8,'), ['10.0.0.5', '10.0.0.0/8', '::1', 'fd00::/8']);
  for (const wrong of [
    'proxy.example.test',
    '10.0.0.0/33',
    '10.0.0.0/0',
    '::/129',
    '10.0.0.5/8/9',
    '10.0.0.5 10.0.0.6',
    '10.0.0.0/x',
  ]) {
    const named = new RegExp(`BERTH_TRUSTED_PROXIES: ${wrong.replaceAll('.', '\\.')}: must be`);
    assert.throws(() => read(`127.0.0.1,${wrong}`), named, wrong);
  }
});

test('the git host is a URL without a user; allowed hosts default to https', () => {
  const read = (more: Record<string, string>) => readServeConfig({ ...enough, ...more }).settings.git;
  for (const [given, expected] of [
    ['https://git.example.test/', 'https://git.example.test'],
    ['https://git.example.test:8443/scm', 'https://git.example.test:8443/scm'],
    ['http://10.0.0.1:3000', 'http://10.0.0.1:3000'],
  ] as const)
    assert.equal(read({ BERTH_GIT_BASE_URL: given }).baseUrl, expected);

  for (const wrong of [
    'git.example.test',
    'ssh://git.example.test',
    'https://me:secret@git.example.test',
    'https://git.example.test/?a',
    'file:///srv',
  ])
    assert.throws(() => read({ BERTH_GIT_BASE_URL: wrong }), /BERTH_GIT_BASE_URL: must be an https URL/, wrong);

  assert.deepEqual(
    read({ BERTH_GIT_ALLOW_URLS: 'Git.Example.test, b.test:8443,http://10.0.0.1:3000,https://c.test:443' })
      .allowedOrigins,
    ['https://git.example.test', 'https://b.test:8443', 'http://10.0.0.1:3000', 'https://c.test'],
  );
  for (const wrong of [
    '*',
    'git.example.test/path',
    'ssh://git.example.test',
    'me@git.example.test',
    'a.test,,b.test',
    'https://a.test/',
  ]) {
    assert.throws(
      () => read({ BERTH_GIT_ALLOW_URLS: wrong }),
      /BERTH_GIT_ALLOW_URLS: must be comma-separated hosts/,
      wrong,
    );
  }

  assert.deepEqual(read({ BERTH_CLONE_TIMEOUT_SECONDS: '5', BERTH_CLONE_MAX_MIB: '7' }).cloneMaxMib, 7);
});

test('a secret key under 32 bytes is refused naming variable and file, never the key', () => {
  const short = { ...enough, BERTH_SECRET_KEY_FILE: join(folder, 'short-key') };
  assert.throws(
    () => readServeConfig(short),
    /BERTH_SECRET_KEY_FILE: .*short-key: a secret key must be at least 32 bytes long on one line, not 31$/,
  );
  assert.equal(JSON.stringify({ key: readServeConfig(enough).secretKey }), '{"key":"[secret key]"}');
});

test('an OIDC provider requires its client and has a button name', () => {
  const issuer = { ...enough, BERTH_OIDC_ISSUER: 'https://id.example.test/realm' };
  assert.throws(
    () => readServeConfig(issuer),
    /BERTH_OIDC_ISSUER requires BERTH_OIDC_CLIENT_ID and BERTH_OIDC_CLIENT_SECRET_FILE/,
  );
  const whole = { ...issuer, BERTH_OIDC_CLIENT_ID: 'berth', BERTH_OIDC_CLIENT_SECRET_FILE: join(folder, 'token') };
  const oidc = { issuer: 'https://id.example.test/realm', clientId: 'berth', clientSecret: 'secret' };
  assert.deepEqual(readServeConfig(whole).oidc, { ...oidc, name: 'single sign-on' });
  assert.deepEqual(readServeConfig({ ...whole, BERTH_OIDC_NAME: 'Example ID' }).oidc, { ...oidc, name: 'Example ID' });
  assert.throws(
    () => readServeConfig({ ...whole, BERTH_OIDC_CLIENT_SECRET_FILE: join(folder, 'empty') }),
    /BERTH_OIDC_CLIENT_SECRET_FILE/,
  );
});

test('mail goes to the server of the URL or URL file, else to a folder', () => {
  const from = 'Berth <berth@localhost>';
  assert.deepEqual(readServeConfig({ ...enough, BERTH_SMTP_URL_FILE: join(folder, 'smtp-url') }).mail, {
    kind: 'smtp',
    url: 'smtps://user:secret@mail.example.test',
    from,
  });
  assert.deepEqual(readServeConfig({ ...enough, BERTH_SMTP_URL: 'smtp://mail', BERTH_MAIL_FROM: 'a@b.test' }).mail, {
    kind: 'smtp',
    url: 'smtp://mail',
    from: 'a@b.test',
  });
  assert.deepEqual(readServeConfig({ ...enough, BERTH_OUTBOX_FOLDER: '/out' }).mail, {
    kind: 'outbox',
    folder: '/out',
    from,
  });
});

test('an empty token file is refused by name', () => {
  assert.throws(
    () => readServeConfig({ ...enough, BERTH_HOST_TOKEN_FILE: join(folder, 'empty') }),
    /BERTH_HOST_TOKEN_FILE/,
  );
});

test('Stripe requires an API key and a signing secret, each in its own file', async () => {
  const files = {
    BERTH_STRIPE_SECRET_KEY_FILE: join(folder, 'stripe-key'),
    BERTH_STRIPE_WEBHOOK_SECRET_FILE: join(folder, 'stripe-webhook'),
  };
  await writeFile(files.BERTH_STRIPE_SECRET_KEY_FILE, 'sk_test_1234567890\n');
  await writeFile(files.BERTH_STRIPE_WEBHOOK_SECRET_FILE, 'whsec_1234567890\n');
  const read = (more: Record<string, string>): unknown => readServeConfig({ ...enough, ...more }).stripe;
  assert.deepEqual(read(files), { secretKey: 'sk_test_1234567890', webhookSecret: 'whsec_1234567890', apiUrl: null });
  assert.deepEqual(read({ ...files, BERTH_STRIPE_API_URL: 'http://127.0.0.1:4' }), {
    secretKey: 'sk_test_1234567890',
    webhookSecret: 'whsec_1234567890',
    apiUrl: 'http://127.0.0.1:4',
  });
  for (const [name, file] of Object.entries(files)) assert.throws(() => read({ [name]: file }), /must be set together/);
  const swapped = {
    BERTH_STRIPE_SECRET_KEY_FILE: files.BERTH_STRIPE_WEBHOOK_SECRET_FILE,
    BERTH_STRIPE_WEBHOOK_SECRET_FILE: files.BERTH_STRIPE_SECRET_KEY_FILE,
  };
  assert.throws(
    () => read(swapped),
    (error: Error) =>
      /BERTH_STRIPE_SECRET_KEY_FILE: .* must contain one word with the prefix sk_ or rk_$/.test(error.message) &&
      !error.message.includes('1234'),
  );
  for (const url of ['http://api.example.test', 'http://127.0.0.1.example.test', 'ftp://127.0.0.1', 'nothing'])
    assert.throws(() => read({ ...files, BERTH_STRIPE_API_URL: url }), /BERTH_STRIPE_API_URL: must be/);
});

const STARTER: Plan = {
  ...SELF_HOSTED_PLAN,
  id: 'starter',
  name: 'Starter',
  tier: 'standard',
  concurrentSandboxes: 5,
  largestSize: 'medium',
  ephemeralSessionSeconds: 3_600,
};

test('plans of BERTH_PLANS_FILE extend or replace the self-hosted plan', async () => {
  const file = join(folder, 'plans.json');
  const read = () => readServeConfig({ ...enough, BERTH_PLANS_FILE: file }).plans;
  await writeFile(file, JSON.stringify({ plans: [STARTER] }));
  assert.deepEqual([...read().values()], [SELF_HOSTED_PLAN, STARTER]);
  const capped = { ...SELF_HOSTED_PLAN, concurrentSandboxes: 2 };
  await writeFile(file, JSON.stringify({ plans: [STARTER, capped] }));
  assert.deepEqual(read().get('self-hosted'), capped);
});

test('machine time rates come from the plans file or the defaults', async () => {
  const file = join(folder, 'plans.json');
  const read = () => readServeConfig({ ...enough, BERTH_PLANS_FILE: file }).settings.machineRates;
  await writeFile(file, JSON.stringify({ plans: [STARTER] }));
  assert.deepEqual(read(), DEFAULT_MACHINE_RATES);
  const machineRates = { vcpuHourUsd: 0.5, memoryGbHourUsd: 0.25, diskGbHourUsd: 0 };
  await writeFile(file, JSON.stringify({ plans: [STARTER], machineRates }));
  assert.deepEqual(read(), machineRates);
});

const WRONG_PLANS: [what: string, content: string, message: RegExp][] = [
  ['that is no JSON', '{"plans":', /plans\.json: .*JSON/],
  [
    'with a rate below nothing',
    JSON.stringify({ plans: [STARTER], machineRates: { vcpuHourUsd: -1, memoryGbHourUsd: 0, diskGbHourUsd: 0 } }),
    /machineRates\.vcpuHourUsd/,
  ],
  [
    'with rates of some resources',
    JSON.stringify({ plans: [STARTER], machineRates: { vcpuHourUsd: 1 } }),
    /machineRates\.memoryGbHourUsd/,
  ],
  ['without plans', '{}', /plans\.json: plans: /],
  ['with an empty list', '{"plans":[]}', /plans\.json: plans: /],
  ['with an unknown field', JSON.stringify({ plans: [STARTER], prices: [] }), /plans\.json: the file: .*prices/],
  [
    'with an unknown size',
    JSON.stringify({ plans: [{ ...STARTER, largestSize: 'huge' }] }),
    /plans\.json: plans\.0\.largestSize: /,
  ],
  [
    'with a cap of none',
    JSON.stringify({ plans: [{ ...STARTER, concurrentSandboxes: 0 }] }),
    /plans\.0\.concurrentSandboxes: /,
  ],
  [
    'without a cap said',
    JSON.stringify({ plans: [{ ...STARTER, concurrentSandboxes: undefined }] }),
    /plans\.0\.concurrentSandboxes: /,
  ],
  ['with a wrong id', JSON.stringify({ plans: [{ ...STARTER, id: 'My Plan' }] }), /plans\.0\.id: must be lowercase/],
  [
    'with fewer hours than none',
    JSON.stringify({ plans: [{ ...STARTER, includedMachineHours: -1 }] }),
    /plans\.0\.includedMachineHours: /,
  ],
  ...[0, 1.5, 36_501, '90'].map((activityRetentionDays): [string, string, RegExp] => [
    `with ${JSON.stringify(activityRetentionDays)} days of activity`,
    JSON.stringify({ plans: [{ ...STARTER, activityRetentionDays }] }),
    /plans\.0\.activityRetentionDays: /,
  ]),
  ...(['orgs', 'projects', 'apiKeys'] as const).flatMap((field) =>
    [0, 1.5, 1_000_001].map((limit): [string, string, RegExp] => [
      `with ${limit} ${field}`,
      JSON.stringify({ plans: [{ ...STARTER, [field]: limit }] }),
      new RegExp(String.raw`plans\.0\.${field}: `),
    ]),
  ),
  ...[0, 1.5, 10_000_001].map((requestsPerMinute): [string, string, RegExp] => [
    `with ${requestsPerMinute} requests per minute`,
    JSON.stringify({ plans: [{ ...STARTER, requestsPerMinute }] }),
    /plans\.0\.requestsPerMinute: /,
  ]),
  [
    'in which two plans have one price',
    JSON.stringify({
      plans: [
        { ...STARTER, priceId: 'price_1' },
        { ...STARTER, id: 'other', priceId: 'price_1' },
      ],
    }),
    /duplicate priceId price_1/,
  ],
  ['with a plan that is there twice', JSON.stringify({ plans: [STARTER, STARTER] }), /duplicate plan starter/],
];

for (const [what, content, message] of WRONG_PLANS) {
  test(`a plans file ${what} stops the start naming variable, file and position`, async () => {
    const file = join(folder, 'plans.json');
    await writeFile(file, content);
    const refused = (error: Error): boolean => /BERTH_PLANS_FILE: /.test(error.message) && message.test(error.message);
    assert.throws(() => readServeConfig({ ...enough, BERTH_PLANS_FILE: file }), refused);
  });
}

test('a plan without price and retention has none and 90 days: older catalogues can be read', async () => {
  const file = join(folder, 'plans.json');
  const {
    includedMachineHours: _,
    overageUsdPerMachineHour: __,
    priceId: ___,
    activityRetentionDays: ____,
    projects: _____,
    apiKeys: ______,
    orgs: _______,
    requestsPerMinute: ________,
    ...before
  } = STARTER;
  await writeFile(file, JSON.stringify({ plans: [before] }));
  const { plans } = readServeConfig({ ...enough, BERTH_PLANS_FILE: file });
  assert.deepEqual(plans.get('starter'), {
    ...before,
    includedMachineHours: null,
    overageUsdPerMachineHour: null,
    activityRetentionDays: 90,
    orgs: null,
    requestsPerMinute: null,
    projects: null,
    apiKeys: null,
    priceId: null,
  });
});

test('a missing plans file stops the start by name', () => {
  assert.throws(
    () => readServeConfig({ ...enough, BERTH_PLANS_FILE: join(folder, 'none.json') }),
    /BERTH_PLANS_FILE: .*none\.json.*ENOENT/,
  );
});
