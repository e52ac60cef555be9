// Opens a page for whoever sits at this machine, where there is a browser. Must not open anything but http and https.
import { spawn } from 'node:child_process';

/** A program that is still there after this long is the browser itself. */
const STAYS_MS = 3_000;

/** Resolves with whether a browser took it. Never rejects. */
export async function openInBrowser(url: string, environment: Readonly<NodeJS.ProcessEnv>): Promise<boolean> {
  const page = webPage(url);
  if (page === null) return false;
  for (const [program = '', ...args] of browsers(page, environment)) {
    if (await start(program, args, environment)) return true;
  }
  return false;
}

/** The link as it may be handed to a browser; null where it may not, as `file:` and its like, whoever made them. */
function webPage(url: string): string | null {
  const page = URL.parse(url);
  return page !== null && ['http:', 'https:'].includes(page.protocol) ? page.href : null;
}

/** Commands to try, as words. BROWSER has one or more, with `%s` for the page, as other programs read it. */
function browsers(url: string, environment: Readonly<NodeJS.ProcessEnv>): string[][] {
  const named = (environment['BROWSER'] ?? '').split(':').flatMap((command) => {
    const words = command.split(' ').filter((word) => word !== '');
    if (words.length === 0) return [];
    return [words.some((word) => word.includes('%s')) ? words.map((word) => word.replaceAll('%s', () => url)) : [...words, url]];
  });
  if (named.length > 0) return named;
  if (process.platform === 'darwin') return [['open', url]];
  if (process.platform === 'win32') return [['rundll32', 'url.dll,FileProtocolHandler', url]];
  if (environment['WSL_DISTRO_NAME']) return [['wslview', url]];
  // Without a display xdg-open may start one for terminals, in ours.
  return environment['DISPLAY'] || environment['WAYLAND_DISPLAY'] ? [['xdg-open', url]] : [];
}

async function start(program: string, args: readonly string[], environment: Readonly<NodeJS.ProcessEnv>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const child = spawn(program, args, { stdio: 'ignore', detached: true, env: { ...environment } });
  const timer = setTimeout(() => resolve(true), STAYS_MS);
  child.once('error', () => resolve(false));
  child.once('exit', (code) => resolve(code === 0));
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    child.unref();
  }
}
