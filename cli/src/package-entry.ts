// Entry point of the package: enables the compile cache and polyfills. Must import nothing else of
// the program.
import nodeModule from 'node:module';
import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import './older-node.ts';

const xdg = process.env['XDG_CACHE_HOME'] ?? '';
// The default is in a world-writable folder. Node 20 lacks the function.
nodeModule.enableCompileCache?.(
  join(isAbsolute(xdg) ? xdg : join(process.env['HOME'] || homedir(), '.cache'), 'berth', 'node-compile'),
);
await import('./package-main.ts');
