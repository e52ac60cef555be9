// Error messages of invalid requests: the field, the allowed values, the value found.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startApi, type Answer, type TestApi } from '../world/api.ts';

let api: TestApi;
before(async () => {
  api = await startApi({ durable: false });
});
after(() => api.close());

const create = (body: object): Promise<Answer> =>
  api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
    body: { agent: 'agent_one', projectId: api.projectId, ...body },
    headers: { prefer: 'respond-async' },
  });

const keys = (count: number): Record<string, number> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`key${index}`, index]));

const REFUSED: [title: string, body: object, message: RegExp][] = [
  ['no agent', { agent: undefined }, /^body\.agent is required: one of "agent_one", "agent_two"$/],
  ['a wrong agent', { agent: 'claude' }, /^body\.agent must be one of "agent_one", "agent_two", not "claude"$/],
  ['no projectId', { projectId: undefined }, /^body\.projectId is required: a string$/],
  ['a projectId that is no text', { projectId: 7 }, /^body\.projectId must be a string, not 7$/],
  ['25 metadata keys', { metadata: keys(25) }, /^body\.metadata must have at most 24 keys, has 25$/],
  [
    'nested metadata',
    { metadata: { a: { b: 1 } } },
    /^body\.metadata\.a must be a string, a number or a boolean, not an object$/,
  ],
  [
    'a list in metadata',
    { metadata: { a: [] } },
    /^body\.metadata\.a must be a string, a number or a boolean, not an array$/,
  ],
  [
    'null in metadata',
    { metadata: { a: null } },
    /^body\.metadata\.a must be a string, a number or a boolean, not null$/,
  ],
  ['metadata that is text', { metadata: 'a=b' }, /^body\.metadata must be an object, not "a=b"$/],
  [
    'an over-long metadata value',
    { metadata: { a: 'x'.repeat(1_025) } },
    /^body\.metadata\.a must be at most 1024 characters long/,
  ],
  ['a NUL in a metadata value', { metadata: { a: '\0' } }, /^body\.metadata\.a must not contain NUL/],
  ['a NUL in a metadata key', { metadata: { 'a\0': 1 } }, /^body\.metadata\.a\0 \(field name\) must not contain NUL/],
  [
    'an empty metadata key',
    { metadata: { '': 1 } },
    /^body\.metadata\. \(field name\) must be at least 1 character long, not 0$/,
  ],
  [
    'an over-long metadata key',
    { metadata: { ['k'.repeat(129)]: 1 } },
    /\(field name\) must be at most 128 characters long, not 129$/,
  ],
  ['an unknown field', { size: 'small' }, /^body\.size: unknown field; allowed: agent, projectId, name, repository, /],
  ['a field in the wrong case', { endUserID: 'x' }, /^body\.endUserID: unknown field; allowed: .*endUserId/],
  [
    'a wrong profile',
    { profile: 'huge' },
    /^body\.profile must be one of "auto", "agent-small", .*"long-running", not "huge"$/,
  ],
  [
    'a wrong machineSize',
    { machineSize: 'tiny' },
    /^body\.machineSize must be one of "small", "medium", "large", "xlarge", not "tiny"$/,
  ],
  [
    'a wrong persistencePolicy',
    { persistencePolicy: 'never' },
    /^body\.persistencePolicy must be one of "always_on", "sleep_resume", not "never"$/,
  ],
  ['an empty name', { name: '' }, /^body\.name must be at least 1 character long, not 0$/],
  ['an over-long name', { name: 'x'.repeat(101) }, /^body\.name must be at most 100 characters long, not 101$/],
  ['an empty endUserId', { endUserId: '' }, /^body\.endUserId must be at least 1 character long, not 0$/],
  [
    'a lone surrogate in an endUserId',
    { endUserId: '\ud800' },
    /^body\.endUserId must not contain NUL characters or lone surrogates$/,
  ],
  ['a repository in another form', { repository: 'just-a-name' }, /^body\.repository must have the form owner\/repo$/],
  ['a wrong mode', { mode: 'persistent' }, /^body\.mode must be one of "ephemeral", not "persistent"$/],
  ['a ttl of no seconds', { ttlSeconds: 0 }, /^body\.ttlSeconds must be at least 1, not 0$/],
  ['a ttl of more than a day', { ttlSeconds: 86_401 }, /^body\.ttlSeconds must be at most 86400, not 86401$/],
  ['a ttl that is no whole number', { ttlSeconds: 1.5 }, /^body\.ttlSeconds must be an integer, not 1\.5$/],
  [
    'mode without ttlSeconds',
    { mode: 'ephemeral' },
    /^body\.ttlSeconds is required with mode "ephemeral": an integer from 1 to 86400$/,
  ],
  ['ttlSeconds without mode', { ttlSeconds: 60 }, /^body\.ttlSeconds is only for mode "ephemeral"/],
  [
    'mode and a persistencePolicy',
    { mode: 'ephemeral', ttlSeconds: 60, persistencePolicy: 'always_on' },
    /^body\.persistencePolicy is not allowed with mode "ephemeral"/,
  ],
  [
    'more unknown fields than are worth telling, and endless names',
    { ...keys(30), metadata: { ['k'.repeat(5_000)]: null } },
    /^body\.metadata\.k{60}\.\.\. .{0,200}body\.key0, body\.key1, body\.key2, body\.key3, body\.key4, and 25 more: unknown fields; allowed: /,
  ],
  [
    'several faults at once',
    { agent: 1, name: 2, mood: 3 },
    /body\.agent .*; body\.name .*; body\.mood: unknown field/,
  ],
];

for (const [title, body, message] of REFUSED) {
  test(`a create with ${title} is 400 and names the field and the allowed values`, async () => {
    const answer = await create(body);
    assert.equal(answer.status, 400);
    assert.equal(answer.body.error.code, 'invalid_request');
    assert.match(answer.body.error.message, message);
    const { field } = answer.body.error;
    assert.ok(field.startsWith('body.') && answer.body.error.message.startsWith(field), field);
  });
}

test('a faulty create leaves no sandbox', async () => {
  assert.equal((await api.call('GET', `/v1/orgs/${api.orgId}/sandboxes`)).body.sandboxes.length, 0);
});

test('a number out of range and a field named __proto__ are 400 with a precise message', async () => {
  const createRaw = (metadata: string): Promise<Answer> =>
    api.call('POST', `/v1/orgs/${api.orgId}/sandboxes`, {
      rawBody: `{"agent":"agent_one","projectId":"${api.projectId}","metadata":${metadata}}`,
    });
  const large = await createRaw('{"a":1e400}');
  assert.match(
    large.body.error.message,
    /^body\.metadata\.a must be a string, a number or a boolean, not a number beyond 1\.8e308$/,
  );
  const named = await createRaw('{"__proto__":1}');
  assert.equal(named.body.error.code, 'invalid_request');
  assert.match(named.body.error.message, /^body: the field names __proto__ and constructor\.prototype are not allowed/);
});

for (const [title, projectId] of Object.entries({
  unknown: 'prj_aaaaaaaaaaaaaaaaaaaaaaaa',
  'no id': 'my project',
  'with a NUL': 'prj_\0',
})) {
  test(`a create in a project that is ${title} is 400 unknown_project`, async () => {
    const answer = await create({ projectId });
    assert.equal(answer.status, 400);
    assert.equal(answer.body.error.code, 'unknown_project');
    assert.match(answer.body.error.message, /body\.projectId/);
  });
}

test("a create in another org's project is 400 unknown_project, as if it did not exist", async () => {
  const other = await api.makeOrg();
  assert.equal((await create({ projectId: other.projectId })).body.error.code, 'unknown_project');
});

test('a public key is stored as one line; a private key is refused and never repeated or logged', async () => {
  const line = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)} me@example.test`;
  const taken = await create({ sshPublicKey: `${line}\n` });
  assert.equal(taken.status, 201, JSON.stringify(taken.body));
  const row = await api.db
    .selectFrom('sandbox')
    .select('ssh_public_key')
    .where('id', '=', taken.body.sandbox.id)
    .executeTakeFirstOrThrow();
  assert.equal(row.ssh_public_key, line);
  assert.ok(!JSON.stringify(taken.body).includes('AAAAC3'), 'it is not answered');

  const secret = api.secret(`b3BlbnNzaC1rZXktdjE${'AAAABG5vbmU'.repeat(5)}`);
  for (const sshPublicKey of [
    `-----BEGIN OPENSSH PRIVATE KEY-----\n${secret}\n-----END OPENSSH PRIVATE KEY-----\n`,
    secret,
    `ssh-ed25519 ${secret}`,
  ]) {
    const refused = await create({ sshPublicKey });
    assert.deepEqual([refused.status, refused.body.error.code], [400, 'invalid_request']);
    assert.match(
      refused.body.error.message,
      /^body\.sshPublicKey is a private key and was rejected\. .*replace it wherever it is used/,
    );
    assert.ok(!refused.body.error.message.includes(secret.slice(0, 20)));
  }
  for (const sshPublicKey of [[secret], { key: secret }, 5, null, secret.repeat(400)]) {
    const { status, body } = await create({ sshPublicKey });
    assert.deepEqual([status, JSON.stringify(body).includes(secret.slice(0, 20))], [400, false]);
  }
});

test('24 metadata keys in any script, a profile and a persistence policy are stored unchanged', async () => {
  const metadata = { ...keys(21), text: '日本語 "\\ \u2028', yes: true, tiny: 1e-7 };
  const answer = await create({
    metadata,
    endUserId: ' 💡/../%00 ',
    name: 'ñ'.repeat(100),
    profile: 'auto',
    persistencePolicy: 'always_on',
  });
  assert.equal(answer.status, 201);
  assert.deepEqual(answer.body.sandbox.metadata, metadata);
  assert.equal(answer.body.sandbox.endUserId, ' 💡/../%00 ');
});

test('an empty or repeated endUserId filter is 400, as is a filter that does not exist', async () => {
  const list = (query: string): Promise<Answer> => api.call('GET', `/v1/orgs/${api.orgId}/sandboxes?${query}`);
  assert.match((await list('endUserId=')).body.error.message, /^query\.endUserId must be at least 1 character long/);
  assert.match(
    (await list('endUserId=a&endUserId=b')).body.error.message,
    /^query\.endUserId must be a string, not an array$/,
  );
  assert.match((await list('endUserId=%00')).body.error.message, /^query\.endUserId must not contain NUL/);
  for (const wrong of ['endUser=a', 'endUserId=a&metdata[app]=b']) {
    assert.match(
      (await list(wrong)).body.error.message,
      /^query\.(endUser|metdata): unknown field; allowed: .*endUserId/,
    );
  }
  assert.equal((await api.call('GET', '/v1/me?page=2')).status, 200, 'a route without parameters ignores them');
});

test('a destroy accepts no body or an empty one, with any content type', async () => {
  for (const options of [{}, { body: {} }, { rawBody: '', headers: { 'content-type': 'application/json' } }]) {
    const { id } = await api.makeSandbox('deleted');
    assert.equal((await api.call('POST', `/v1/sandboxes/${id}/destroy`, options)).status, 200);
  }
});

test('a project gets the requested useCase and defaults; unknown fields are ignored', async () => {
  const make = (body: object): Promise<Answer> => api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body });
  const asked = {
    name: 'P',
    useCase: 'external',
    defaultProfile: 'build-heavy',
    defaultPersistencePolicy: 'always_on',
    defaultRepository: 'acme/web',
    defaultBranch: 'main',
    defaultIdleMinutes: 0,
    wakeOnUse: true,
    metadata: { text: '日本語 "\\ \u2028', tiny: 1e-7, ...keys(22) },
  };
  const full = await make({ ...asked, color: 'red' });
  assert.equal(full.status, 201);
  const { project } = full.body;
  for (const [field, value] of Object.entries(asked)) assert.deepEqual(project[field], value);
  assert.equal('color' in project, false);
  const bare = (await make({})).body.project;
  assert.match(bare.name, /^project-[a-z2-7]{8}$/);
  assert.deepEqual([bare.useCase, bare.defaultProfile, bare.sandboxMachineHourLimit], ['internal', null, null]);
  assert.deepEqual([bare.defaultRepository, bare.defaultBranch, bare.defaultPersistencePolicy], [null, null, null]);
  assert.deepEqual(
    [bare.defaultIdleMinutes, bare.wakeOnUse, bare.metadata, bare.hasRepoCredentials],
    [null, false, {}, false],
  );
  const listed = (await api.call('GET', `/v1/orgs/${api.orgId}/projects`)).body.projects;
  assert.deepEqual(listed.slice(0, 2), [bare, project]);
});

for (const [title, body, message] of [
  ['an empty name', { name: '' }, /^body\.name must be at least 1 character long, not 0$/],
  ['an over-long name', { name: 'x'.repeat(101) }, /^body\.name must be at most 100 characters long, not 101$/],
  ['a name that is a number', { name: 7 }, /^body\.name must be a string, not 7$/],
  ['no name at all', { name: null }, /^body\.name must be a string, not null$/],
  ['a NUL in its name', { name: 'a\0' }, /^body\.name must not contain NUL characters or lone surrogates$/],
  ['an empty useCase', { useCase: '' }, /^body\.useCase must be at least 1 character long, not 0$/],
  ['an over-long useCase', { useCase: 'x'.repeat(65) }, /^body\.useCase must be at most 64 characters long, not 65$/],
  [
    'a useCase in upper case',
    { useCase: 'External' },
    /^body\.useCase must be spelled "external", in lower case and without white space$/,
  ],
  ['a useCase with white space', { useCase: ' external' }, /^body\.useCase must be spelled "external"/],
  ['a useCase that is null', { useCase: null }, /^body\.useCase must be a string, not null$/],
  [
    'a wrong profile',
    { defaultProfile: 'huge' },
    /^body\.defaultProfile must be one of "auto", .*"long-running", not "huge"$/,
  ],
  ['a profile that is a number', { defaultProfile: 1 }, /^body\.defaultProfile must be one of "auto", .*, not 1$/],
  [
    'a wrong persistence policy',
    { defaultPersistencePolicy: 'never' },
    /^body\.defaultPersistencePolicy must be one of "always_on", "sleep_resume", not "never"$/,
  ],
  [
    'a repository without an owner',
    { defaultRepository: 'web' },
    /^body\.defaultRepository must have the form owner\/repo$/,
  ],
  [
    'a repository that is a URL on a host that is not allowed',
    { defaultRepository: 'https://git.test/a/b' },
    /^body\.defaultRepository must have the form owner\/repo, or be a URL on https:\/\/other\.example\.test or http:\/\/127\.0\.0\.1:3000; to allow URLs on https:\/\/git\.test, the operator of this service adds git\.test to BERTH_GIT_ALLOW_URLS$/,
  ],
  [
    'a repository with a user',
    { defaultRepository: 'https://u:p@other.example.test/a' },
    /^body\.defaultRepository must be the https URL of a repository,/,
  ],
  [
    'a repository that leads elsewhere',
    { defaultRepository: 'acme/..' },
    /^body\.defaultRepository must have the form owner\/repo$/,
  ],
  [
    'a repository that is an option',
    { defaultRepository: '-o/web' },
    /^body\.defaultRepository must have the form owner\/repo$/,
  ],
  [
    'an over-long repository',
    { defaultRepository: `a/${'x'.repeat(199)}` },
    /^body\.defaultRepository must be at most 200 characters long/,
  ],
  ['a repository that is a number', { defaultRepository: 7 }, /^body\.defaultRepository must be a string, not 7$/],
  [
    'an empty branch',
    { defaultBranch: '' },
    /^body\.defaultBranch must be at least 1 character long, not 0; body\.defaultBranch must be a git /,
  ],
  ['a branch with a space', { defaultBranch: 'my branch' }, /^body\.defaultBranch must be a git branch name$/],
  [
    'a branch that is an option',
    { defaultBranch: '--upload-pack=x' },
    /^body\.defaultBranch must be a git branch name$/,
  ],
  [
    'an over-long branch',
    { defaultBranch: 'b'.repeat(256) },
    /^body\.defaultBranch must be at most 255 characters long, not 256$/,
  ],
  ['a branch that is true', { defaultBranch: true }, /^body\.defaultBranch must be a string, not true$/],
  ['a negative idle time', { defaultIdleMinutes: -1 }, /^body\.defaultIdleMinutes must be at least 0, not -1$/],
  [
    'an idle time of more than 30 days',
    { defaultIdleMinutes: 43_201 },
    /^body\.defaultIdleMinutes must be at most 43200, not 43201$/,
  ],
  [
    'an idle time in parts of minutes',
    { defaultIdleMinutes: 0.5 },
    /^body\.defaultIdleMinutes must be an integer, not 0\.5$/,
  ],
  ['an idle time that is text', { defaultIdleMinutes: '5' }, /^body\.defaultIdleMinutes must be a number, not "5"$/],
  ['a wakeOnUse that is text', { wakeOnUse: 'yes' }, /^body\.wakeOnUse must be a boolean, not "yes"$/],
  ['a wakeOnUse that is null', { wakeOnUse: null }, /^body\.wakeOnUse must be a boolean, not null$/],
  ['metadata that is null', { metadata: null }, /^body\.metadata must be an object, not null$/],
  ['metadata that is a list', { metadata: [] }, /^body\.metadata must be an object, not an array$/],
  ['25 metadata keys', { metadata: keys(25) }, /^body\.metadata must have at most 24 keys, has 25$/],
  [
    'nested metadata',
    { metadata: { a: {} } },
    /^body\.metadata\.a must be a string, a number or a boolean, not an object$/,
  ],
  [
    'an over-long metadata value',
    { metadata: { a: 'x'.repeat(1_025) } },
    /^body\.metadata\.a must be at most 1024 characters long/,
  ],
  [
    'an over-long metadata key',
    { metadata: { ['k'.repeat(129)]: 1 } },
    /\(field name\) must be at most 128 characters long, not 129$/,
  ],
  [
    'several faults at once',
    { name: 1, wakeOnUse: 2, defaultBranch: 3 },
    /body\.name must be .*body\.defaultBranch must be .*body\.wakeOnUse must be /,
  ],
] as const) {
  test(`a project with ${title} is 400 and names the allowed values`, async () => {
    const before = (await api.call('GET', `/v1/orgs/${api.orgId}/projects`)).body;
    for (const answer of [
      await api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body }),
      await api.call('PATCH', `/v1/orgs/${api.orgId}/projects/${api.projectId}`, { body }),
    ]) {
      assert.equal(answer.status, 400);
      assert.equal(answer.body.error.code, 'invalid_request');
      assert.match(answer.body.error.message, message);
    }
    assert.deepEqual((await api.call('GET', `/v1/orgs/${api.orgId}/projects`)).body, before);
  });
}

test('a project with sandboxMachineHourLimit is refused naming its route; null is ignored', async () => {
  const send = (value: unknown): Promise<Answer>[] => [
    api.call('POST', `/v1/orgs/${api.orgId}/projects`, { body: { sandboxMachineHourLimit: value } }),
    api.call('PATCH', `/v1/orgs/${api.orgId}/projects/${api.projectId}`, { body: { sandboxMachineHourLimit: value } }),
  ];
  for (const value of [10, 0, -1]) {
    for (const refused of await Promise.all(send(value))) {
      assert.equal(refused.body.error.code, 'invalid_request');
      assert.equal(
        refused.body.error.message,
        'body.sandboxMachineHourLimit must be null or absent: ' +
          'set it with PATCH /v1/orgs/{orgId}/projects/{projectId}/usage-guardrails',
      );
    }
  }
  for (const { body } of await Promise.all(send('10')))
    assert.match(body.error.message, /^body\.sandboxMachineHourLimit must be a number, not "10"/);
  const [made, changed] = await Promise.all(send(null));
  assert.deepEqual([made?.status, changed?.status], [201, 200]);
});
