// The first file of the package that runs: has Node keep what it compiled, and makes up for what
// its oldest one lacks. Must import nothing of the program before.
import nodeModule from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import './older-node.ts';

const xdg = process.env['XDG_CACHE_HOME'] ?? '';
// Not the default, which is below a folder that everybody may write to. Node 20 has no such thing.
nodeModule.enableCompileCache?.(
  join(isAbsolute(xdg) ? xdg : join(process.env['HOME'] || homedir(), '.cache'), 'berth', 'node-compile'),
);
await import('./package-main.ts');
