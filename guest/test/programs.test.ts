// The Perl programs of the guest compile, and the bundle contains all of them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { bundleGuestDaemon } from '../src/bundle.ts';

const SOURCES = join(import.meta.dirname, '../src');
const programs = globSync('**/*.pl', { cwd: SOURCES }).toSorted();

test('there are seven Perl programs', () => {
  assert.deepEqual(programs, [
    'clones/git-credential.pl',
    'files/append.pl',
    'files/changes.pl',
    'files/program.pl',
    'files/watch.pl',
    'keeper/keeper.pl',
    'machine/kernel-calls.pl',
  ]);
});

for (const program of programs) {
  test(`${program} compiles without a warning`, async () => {
    const { stderr } = await promisify(execFile)('perl', ['-wc', join(SOURCES, program)]);
    assert.equal(stderr, `${join(SOURCES, program)} syntax OK\n`);
  });
}

test('the bundle holds every Perl program, without its comments', async () => {
  const code = Buffer.from((await bundleGuestDaemon()).code).toString('utf8');
  const isComment = (line: string): boolean => /^\s*#/.test(line);
  for (const program of programs) {
    const lines = readFileSync(join(SOURCES, program), 'utf8').split('\n');
    const plain = lines.filter((line) => line.length > 20 && !/[\\`"'$]/.test(line));
    for (const line of plain) assert.equal(code.includes(line), !isComment(line), `${program}: ${line}`);
  }
});

test('the credential helper contains no single quote, since git runs it between single quotes', () => {
  assert.equal(readFileSync(join(SOURCES, 'clones/git-credential.pl'), 'utf8').includes("'"), false);
});
