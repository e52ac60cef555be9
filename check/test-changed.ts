// `npm run test:changed [-- BASE]`: runs the tests that the changes since BASE can affect, those
// not committed included. BASE: where this branch left main.
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { affectedTests } from './source/affected-tests.ts';
import { readTree, ROOT } from './source/tree.ts';

const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' });
const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

const base = process.argv[2] ?? git('merge-base', 'main', 'HEAD').trim();
const untracked = git('ls-files', '--others', '--exclude-standard');
const changed = [...lines(git('diff', '--name-only', base)), ...lines(untracked)];
const tests = affectedTests(readTree(), changed);
console.log(`${changed.length} changed files can affect ${tests.length} test files.`);
if (tests.length > 0) {
  const { status } = spawnSync(join(ROOT, 'berth'), ['test', ...tests], { cwd: ROOT, stdio: 'inherit' });
  process.exitCode = status ?? 1;
}
