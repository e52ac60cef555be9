// The official conformance runner against a real API process. Scenarios that want tools, prompts or
// resources of the runner's own fixture cannot pass: conformance/REVISION.yaml lists them, check by
// check. The runner fails at any other failure, and at a listed check that passes.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { FakeInstallation } from '../fake-installation.ts';
import { installPackages } from '../world/packages.ts';
import { startBearerProxy, type BearerProxy } from './bearer-proxy.ts';

const HERE = import.meta.dirname;
const PROGRAM = 'node_modules/@modelcontextprotocol/conformance/dist/index.js';

/** Scenarios of a revision whose checks must all pass. */
const PASSED: Readonly<Record<string, readonly string[]>> = {
  '2026-07-28': [
    ...['dns-rebinding-protection', 'http-header-validation', 'input-required-result-unsupported-methods'],
    ...['input-required-result-validate-input', 'server-sse-multiple-streams', 'tools-list'],
  ],
  '2025-11-25': ['dns-rebinding-protection', 'ping', 'server-initialize', 'server-session-lifecycle', 'tools-list'],
};

interface Check {
  id: string;
  status: string;
}

let program: string;
let berth: FakeInstallation;
let proxy: BearerProxy;
let folder: string;
before(async () => {
  program = join(await installPackages(join(HERE, 'programs')), PROGRAM);
  proxy = await startBearerProxy(() => ({ url: `${berth.url}/v1/mcp`, token: berth.token }));
  // The runner sends its URL's origin, which a server of its own accepts.
  berth = await FakeInstallation.start({ BERTH_PUBLIC_URL: new URL(proxy.url).origin });
  folder = await mkdtemp(join(tmpdir(), 'berth-conformance-'));
});
after(async () => {
  await berth?.stop();
  await proxy.close();
  await rm(folder, { recursive: true, force: true });
});

interface Outcome {
  code: number;
  output: string;
  /** Checks by scenario. */
  checks: ReadonlyMap<string, readonly Check[]>;
}

async function run(revision: string, expectedFailures: string): Promise<Outcome> {
  const results = await mkdtemp(join(folder, `${revision}-`));
  const flags = ['--requirements', revision, '--expected-failures', expectedFailures, '--output-dir', results];
  const { code, output } = await new Promise<{ code: number; output: string }>((resolve) => {
    execFile(process.execPath, [program, 'server', '--url', proxy.url, ...flags], (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
    );
  });
  const checks = new Map<string, readonly Check[]>();
  for (const name of await readdir(results)) {
    const scenario = /^server-(.*)-\d{4}-\d\d-\d\dT/.exec(name)?.[1] ?? name;
    checks.set(scenario, JSON.parse(await readFile(join(results, name, 'checks.json'), 'utf8')) as Check[]);
  }
  return { code, output, checks };
}

const listOf = (revision: string): string => join(HERE, 'conformance', `${revision}.yaml`);

for (const [revision, passed] of Object.entries(PASSED)) {
  test(`${revision}: every check passes that is not listed`, async () => {
    const { code, output, checks } = await run(revision, listOf(revision));
    assert.equal(code, 0, output);
    for (const scenario of passed) {
      const found = checks.get(scenario) ?? [];
      assert.ok(found.length > 0, `${scenario} did not run`);
      assert.deepEqual(
        found.filter(({ status }) => status === 'FAILURE'),
        [],
        scenario,
      );
    }
  });
}

test('the run fails at a listed check that passes, and at an unlisted failure', async () => {
  const revision = '2025-11-25';
  const listed = await readFile(listOf(revision), 'utf8');
  const changes: [string, string, RegExp][] = [
    [`${listed}  - ping\n`, 'ping', /Stale/],
    [listed.replace(/^.*logging-set-level.*\n/m, ''), 'logging-set-level', /Unexpected failures/],
  ];
  for (const [text, scenario, words] of changes) {
    assert.notEqual(text, listed);
    const path = join(folder, `${scenario}.yaml`);
    await writeFile(path, text);
    const { code, output } = await run(revision, path);
    assert.equal(code, 1, output);
    const [, found = ''] = output.split(words);
    assert.match(found, new RegExp(`\\b${scenario}\\b`), output);
  }
});
