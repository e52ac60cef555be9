// The browser of this machine, if a person can see one here.
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

type Environment = Readonly<NodeJS.ProcessEnv>;

/** The program that opens addresses; null where none would be seen, as over ssh. */
export function browserOpener(environment: Environment, platform: NodeJS.Platform = process.platform): string | null {
  if (platform === 'darwin') return onPath('open', environment);
  const hasScreen = ['DISPLAY', 'WAYLAND_DISPLAY', 'BROWSER'].some((name) => (environment[name] ?? '') !== '');
  return hasScreen ? onPath('xdg-open', environment) : null;
}

/**
 * Opens the address and does not wait for the browser. Resolves with whether the program could be
 * started. Throws for what is not http or https: anything else may start any program.
 */
export async function openInBrowser(opener: string, address: string): Promise<boolean> {
  const { protocol, href } = new URL(address);
  if (protocol !== 'http:' && protocol !== 'https:') throw new Error(`${protocol} is not opened in a browser`);
  const child = spawn(opener, [href], { stdio: 'ignore', detached: true });
  child.unref();
  return await new Promise((resolve) => {
    child.once('spawn', () => resolve(true)).once('error', () => resolve(false));
  });
}

function onPath(program: string, environment: Environment): string | null {
  const folders = (environment['PATH'] ?? '').split(delimiter).filter((folder) => isAbsolute(folder));
  return folders.map((folder) => join(folder, program)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
