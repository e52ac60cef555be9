// Opens pages in a local browser.
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, isAbsolute, join } from 'node:path';

type Environment = Readonly<NodeJS.ProcessEnv>;

/** Program that opens URLs; null without a display, as over ssh. */
export function browserOpener(environment: Environment): string | null {
  if (process.platform === 'darwin') return onPath('open', environment);
  const hasScreen = ['DISPLAY', 'WAYLAND_DISPLAY', 'BROWSER'].some((name) => (environment[name] ?? '') !== '');
  return hasScreen ? onPath('xdg-open', environment) : null;
}

/**
 * Starts the browser without waiting. Resolves with false if it cannot start. Throws unless the URL
 * is http or https: other schemes can start any program.
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
