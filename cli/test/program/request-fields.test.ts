// The fields of the requests of each command, named as its options and arguments.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ROUTES } from '@berth/contract/routes.ts';
import { clientChapters } from '../../src/chapters.ts';
import type { CommandSpec } from '../../src/program/command-spec.ts';
import { fieldNames } from '../../src/program/field-names.ts';
import { sharedOptions } from '../../src/program/program.ts';

const commands = new Map<string, CommandSpec>(
  clientChapters
    .flatMap(({ entries }) => entries)
    .flatMap((entry) =>
      'commands' in entry
        ? entry.commands.map((spec) => [`${entry.name} ${spec.name}`, spec] as const)
        : [[entry.name, entry] as const],
    ),
);

const DEFAULTS_OF_PROJECT = ['sandboxMachineHourLimit'];
const SIZE_OF_TERMINAL = ['cols', 'rows'];
/** Fields that a command sets by itself or never. */
const CALLS: readonly (readonly [command: string, route: string, own?: readonly string[]])[] = [
  ['sandbox create', 'createSandbox'],
  ['sandbox ensure', 'createSandbox'],
  ['run', 'createSandbox'],
  ['sandbox ls', 'listSandboxes', ['after', 'createdBy', 'name']],
  ['sandbox sleep', 'listSandboxes', ['after', 'createdBy', 'limit', 'name', 'q', 'sort']],
  ['sandbox update', 'updateSandbox'],
  ['sandbox resize', 'resizeSandbox'],
  ['sandbox egress', 'setEgress'],
  ['sandbox env', 'updateVariables'],
  ['sandbox env', 'replaceVariables'],
  ['sandbox metrics', 'getMetricsHistory'],
  ['exec', 'execInSandbox', ['stdin']],
  ['exec', 'startProcess', [...SIZE_OF_TERMINAL, 'outputBytes', 'stdin']],
  ['exec', 'terminalInSandbox', [...SIZE_OF_TERMINAL, 'agent', 'mayWake']],
  ['logs', 'readProcessOutput'],
  ['attach', 'followProcessOutput', ['since']],
  ['kill', 'signalProcess'],
  ['files ls', 'listFiles'],
  ['files stat', 'statFile'],
  ['files cat', 'readFile'],
  ['files rm', 'deleteFile'],
  ['files mv', 'moveFile'],
  ['files chmod', 'setFileMode'],
  ['files mkdir', 'createFolder'],
  ['files link', 'createFileLink'],
  ['files watch', 'watchFiles', ['cursor']],
  ['forward', 'tunnelToSandbox'],
  ['tunnel', 'tunnelToSandbox'],
  ['preview create', 'createPreview'],
  ['preview open', 'createPreview', ['audience', 'embeddable', 'endUserId', 'expiresInSeconds', 'label']],
  ['agent ls', 'listAgentSessions'],
  ['agent get', 'getAgentSession', ['revision']],
  ['agent send', 'sendAgentMessage'],
  ['agent log', 'getAgentOutput'],
  ['agent answer', 'answerAgentPrompt'],
  ['org create', 'createOrg'],
  ['org rename', 'updateOrg'],
  ['org set-role', 'updateMember'],
  ['org invite', 'createInvitation'],
  ['org claim-domain', 'claimDomain'],
  ['org require-sso', 'updateSso'],
  ['org caps', 'updateUsageGuardrails'],
  ['project create', 'createProject', DEFAULTS_OF_PROJECT],
  ['project update', 'updateProject', DEFAULTS_OF_PROJECT],
  ['project agent-credentials', 'putAgentCredentials', ['apiKey']],
  ['project caps', 'updateProjectUsageGuardrails'],
  ['key create', 'createApiKey'],
  ['token create', 'createAgentToken'],
  ['usage show', 'getOrgUsage'],
  ['usage daily', 'getDailyUsage'],
  ['activity', 'listActivity'],
  ['activity', 'exportActivity'],
  ['service host', 'getHost'],
  ['whoami', 'updateMe'],
];

/** Paths of the fields of an object, or of its objects in their place. */
function fieldsOf(schema: unknown): string[] {
  let at = schema as { unwrap?: () => unknown; shape?: Record<string, unknown> } | undefined;
  while (at?.unwrap !== undefined && at.shape === undefined) at = at.unwrap() as typeof at;
  return Object.entries(at?.shape ?? {}).flatMap(([name, part]) => {
    const inner = fieldsOf(part);
    return inner.length === 0 ? [name] : inner.map((field) => `${name}.${field}`);
  });
}

test('each field of the requests of a command is named as an option or argument', () => {
  for (const [words, routeName, own = []] of CALLS) {
    const spec = commands.get(words);
    const route = ROUTES.find(({ name }) => name === routeName);
    assert.ok(spec !== undefined && route !== undefined, `${words}, ${routeName}`);
    const nameOf = fieldNames(spec, sharedOptions({ json: false }), new Set());
    const { body, query } = route.request;
    const fields = [...fieldsOf(body).map((one) => `body.${one}`), ...fieldsOf(query).map((one) => `query.${one}`)];
    assert.ok(fields.length > 0, routeName);
    const unnamed = fields.filter((field) => nameOf(field) === undefined).map((field) => field.replace(/^\w+\./, ''));
    assert.deepEqual(unnamed.toSorted(), own.toSorted(), `${words}, ${routeName}`);
  }
});

test('fields inside a field follow the name of the option or argument', () => {
  for (const [words, field, name] of [
    ['sandbox egress', 'body.names.0', '<policy> names.0'],
    ['sandbox create', 'body.egress.names.0', '--egress names.0'],
    ['sandbox create', 'body.metadata.plan', '--metadata plan'],
    ['sandbox rm', 'query.metadata.plan', '--metadata plan'],
    ['project update', 'body.repoCredentials.token', '--repo-token-file'],
    ['project create', 'body.defaultEgress.ports.2', '--default-egress ports.2'],
    ['key create', 'body.scopes.1', '--scope'],
    ['files link', 'body.overwrite', '--no-overwrite'],
  ] as const) {
    const spec = commands.get(words);
    assert.ok(spec !== undefined, words);
    assert.equal(fieldNames(spec, sharedOptions({ json: false }), new Set())(field), name, field);
  }
});
