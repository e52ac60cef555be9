// Every command's help has a summary and valid examples, and docs/cli.md is up to date.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CommanderError, type Command } from 'commander';
import { reference } from '../build/print-reference.ts';
import { clientChapters } from '../src/chapters.ts';
import { machineChapters } from '../src/machine/verbs.ts';
import { buildProgram, type ProgramOptions } from '../src/program/program.ts';
import type { CommandSpec } from '../src/program/command-spec.ts';
import { berth } from './world/berth.ts';

const chapters = [...machineChapters, ...clientChapters];
const commands: { words: string; spec: CommandSpec }[] = chapters
  .flatMap(({ entries }) => entries)
  .flatMap((entry) =>
    'commands' in entry
      ? entry.commands.map((spec) => ({ words: `${entry.name} ${spec.name}`, spec }))
      : [{ words: entry.name, spec: entry }],
  );

/** Fakes of other programs in examples. `ssh` runs its ProxyCommand; the rest accept anything. */
const OTHERS = {
  jq: 'cat >/dev/null',
  // Output of the fake berth where a shell evaluates it.
  value: 'true',
  gh: 'echo a-token',
  curl: 'true',
  ssh: 'for word in "$@"; do case $word in *Command=*) sh -c "${word#*Command=}" ;; esac; done',
};

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-examples-'));
  await mkdir(join(folder, 'bin'));
  await mkdir(join(folder, '.config/fish/completions'), { recursive: true });
  const program = async (path: string, script: string): Promise<void> => {
    await writeFile(path, `#!/bin/bash\n${script}\n`);
    await chmod(path, 0o755);
  };
  // Records arguments, each ended by a zero byte, and the call by another. Reads stdin, or its
  // writer would fail.
  const record = `{ printf '%s\\0' "$@"; printf '\\0'; } >> '${join(folder, 'calls')}'; cat >/dev/null; echo value`;
  await mkdir(join(folder, 'here'));
  for (const path of ['here/berth', 'bin/berth']) await program(join(folder, path), record);
  for (const [name, script] of Object.entries(OTHERS)) await program(join(folder, 'bin', name), script);
});
after(() => rm(folder, { recursive: true, force: true }));

/** Runs a shell line and resolves with the arguments of each berth call. */
async function callsIn(line: string): Promise<string[][]> {
  await rm(join(folder, 'calls'), { force: true });
  for (const [, file = ''] of line.matchAll(/<\s*([\w./-]+)/g)) await writeFile(join(folder, 'here', file), '');
  const env = {
    PATH: `${join(folder, 'bin')}:/usr/bin:/bin`,
    HOME: folder,
    EDITOR: 'true',
    SANDBOX: 'sbx_uodiunxlni4uyqmllemsqh4l',
  };
  const { status, stderr } = spawnSync('bash', ['--norc', '-euo', 'pipefail', '-c', line], {
    cwd: join(folder, 'here'),
    env,
    encoding: 'utf8',
    timeout: 20_000,
  });
  assert.deepEqual([status, stderr], [0, ''], line);
  const recorded = await readFile(join(folder, 'calls'), 'utf8').catch(() => '');
  const words = recorded.split('\0');
  const calls: string[][] = [[]];
  for (const word of words.slice(0, -1)) {
    if (word === '') calls.push([]);
    else calls.at(-1)?.push(word);
  }
  return calls.filter((call) => call.length > 0);
}

/**
 * Parses a call with the real command tree and returns the command's words; throws parser errors.
 */
async function parsed(call: readonly string[]): Promise<string> {
  let found = '';
  let said = '';
  const silent = { write: (text: string) => (said += text) } as unknown as NodeJS.WriteStream;
  const options: ProgramOptions = {
    chapters,
    version: '0.0.0',
    streams: { stdin: process.stdin, stdout: silent, stderr: silent },
    environment: {},
  };
  const program = buildProgram(options, (_spec, command) => {
    for (let at: Command | null = command; at !== null && at !== program; at = at.parent)
      found = `${at.name()} ${found}`.trim();
    return Promise.resolve();
  });
  try {
    await program.parseAsync([...call], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    throw new Error(`berth ${call.join(' ')}: ${said}`, { cause: error });
  }
  return found;
}

test('every command has a one-line summary and examples', () => {
  assert.ok(commands.length > 15);
  for (const { words, spec } of commands) {
    assert.match(spec.summary, /^\S.*[^.\s]$/, words);
    assert.ok(spec.summary.length <= 140 && !spec.summary.includes('\n'), words);
    assert.ok(spec.examples.length > 0, words);
    if (spec.details !== undefined) assert.match(spec.details, /[.)]$/, words);
    for (const { about } of [...(spec.arguments ?? []), ...(spec.options ?? [])])
      assert.match(about, /^\S.*[^.\s]$/, words);
  }
});

for (const { words, spec } of commands) {
  test(`the examples of berth ${words} parse in the shell and in berth, and belong to it`, async () => {
    for (const line of spec.examples) {
      const calls = await callsIn(line);
      assert.ok(calls.length > 0, `no berth in: ${line}`);
      const found = await Promise.all(calls.map(parsed));
      assert.ok(
        found.some((each) => each === words || each.endsWith(` ${words}`) || words.endsWith(` ${each}`)),
        `${line} is ${found.join(', ')}`,
      );
    }
  });
}

test('an example with an unknown option, missing argument, wrong value or unknown command is found', async () => {
  for (const [line, said] of [
    ['berth sandbox ls --jsn', /unknown option '--jsn'[^]*--json/],
    ['berth shell', /missing required argument/],
    ['berth completion tcsh', /Allowed choices are bash, zsh, fish/],
    ['berth sandbox lss', /unknown command 'lss'/],
  ] as const) {
    const [call] = await callsIn(line);
    assert.ok(call !== undefined);
    await assert.rejects(parsed(call), said);
  }
});

test('help of every command shows its summary, its examples and the common options', async () => {
  for (const { words, spec } of commands.filter(({ spec }) => spec.local !== true).slice(0, 4)) {
    const { code, stdout } = await berth([...words.split(' '), '--help']);
    assert.equal(code, 0);
    for (const text of [spec.summary, 'Examples:', ...spec.examples.map((line) => `  $ ${line}`), 'Common options:'])
      assert.ok(stdout.replaceAll(/\s+/g, ' ').includes(text.replaceAll(/\s+/g, ' ')), `${words}: ${text}`);
  }
});

test('docs/cli.md matches the command specs (npm run docs:cli makes it)', async () => {
  assert.equal(await readFile(join(import.meta.dirname, '../../docs/cli.md'), 'utf8'), reference());
});
