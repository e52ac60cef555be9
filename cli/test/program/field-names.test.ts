// Fields of requests in messages of the API, named as the options and arguments of a command.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BerthError } from '@berth/sdk';
import { reportOf } from '../../src/output/report.ts';
import { fieldNames } from '../../src/program/field-names.ts';
import type { CommandSpec } from '../../src/program/command-spec.ts';
import { Service } from '../world/service.ts';

let service: Service;
let id: string;
before(async () => {
  service = await Service.start({ durable: false });
  ({ id } = await service.api.makeSandbox('ready'));
});
after(() => service.close());

const SPEC: CommandSpec = {
  name: 'make',
  summary: 'make',
  arguments: [
    { name: '<mode>', about: 'mode' },
    { name: '<paths...>', about: 'paths', fields: ['path'] },
  ],
  options: [
    { flags: '--idle-minutes <n>', about: 'minutes' },
    { flags: '-e, --env <name=value>', about: 'variable' },
    { flags: '--end-user <id>', about: 'end user', fields: ['endUserId', 'getOrCreate.key'] },
    { flags: '--key <key>', about: 'key', fields: ['getOrCreate.key'] },
    { flags: '--no-branch', about: 'no branch' },
  ],
  examples: ['make'],
  load: async () => await Promise.reject(new Error('not loaded')),
};

test('a field is named as the typed option or the argument that sets it', () => {
  const nameOf = fieldNames(SPEC, [], new Set(['endUser']));
  for (const [field, name] of [
    ['body.idleMinutes', '--idle-minutes'],
    ['query.idleMinutes.0', '--idle-minutes'],
    ['body.env.NAME', '--env NAME'],
    ['body.mode', '<mode>'],
    ['body.path', '<paths>'],
    ['body.getOrCreate.key', '--end-user'],
    ['body.branch', undefined],
    ['body.other', undefined],
    ['body', undefined],
  ] as const)
    assert.equal(nameOf(field), name, field);
  assert.equal(fieldNames(SPEC, [], new Set(['endUser', 'key']))('body.getOrCreate.key'), '--key');
  assert.equal(fieldNames({ ...SPEC, rawFields: true }, [], new Set())('body.mode'), undefined);
});

test('a refused option is a usage error, other refusals keep their exit code', () => {
  const call = { fieldName: fieldNames(SPEC, [], new Set()), sandbox: undefined, url: () => undefined };
  const report = (message: string, code = 'invalid_request', failureExit?: number): unknown =>
    Object.values(reportOf(new BerthError(message, { code, status: 400 }), { call, failureExit }));
  assert.deepEqual(report('body.mode must be one of 1, not 2'), [
    2,
    ['berth: <mode> must be one of 1, not 2 (invalid_request)'],
  ]);
  assert.deepEqual(report('body.mode must be one of 1, not 2', 'invalid_request', 125), [
    125,
    ['berth: <mode> must be one of 1, not 2 (invalid_request)'],
  ]);
  assert.deepEqual(report('body.other is required: text'), [
    1,
    ['berth: body.other is required: text (invalid_request)'],
  ]);
});

test('refusals of the service name options and arguments', async () => {
  const same = ['sandbox', 'ensure', '--no-wait', '--end-user', 'customer-7'];
  assert.equal((await service.run([...same, '--size', 'small'])).code, 0);
  for (const [words, code, message] of [
    [['sandbox', 'ls', '--status', 'awake'], 2, /^berth: --status must be one of "provisioning", /m],
    [['files', 'chmod', id, '9', 'a'], 2, /^berth: <mode> /m],
    [['sandbox', 'egress', id, 'github.com,no!name'], 2, /^berth: <policy> names\.1 must be a DNS name /m],
    [['exec', '-e', 'A B=1', id, '--', 'true'], 125, /^berth: --env A B \(name\) /m],
    [['sandbox', 'env', 'set', id, 'A B=1'], 2, /^berth: \[variables\] A B \(name\) /m],
    [
      [...same, '--size', 'large'],
      1,
      /^berth: --end-user belongs to the sandbox .*: --size is "small", not "large"\./m,
    ],
    [['api', 'GET', '/v1/orgs/{orgId}/sandboxes?limit=none'], 1, /^berth: query\.limit /m],
  ] as const) {
    const ended = await service.run(words);
    assert.equal(ended.code, code, ended.stderr);
    assert.match(ended.stderr, message);
    assert.doesNotMatch(ended.stderr, /undefined/);
  }
});
