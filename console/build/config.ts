// Configuration of Vite, for the build, the development server and the build of test pages.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import react from '@vitejs/plugin-react';
import type { InlineConfig, Plugin } from 'vite';
import { strictStyles } from './strict-styles.ts';

export const CONSOLE = join(import.meta.dirname, '..');
const THEME = join(CONSOLE, 'src/theme/start.ts');
const { version } = JSON.parse(readFileSync(join(CONSOLE, '../package.json'), 'utf8')) as { version: string };

/** @param root folder of `index.html` */
export function viteConfig(root = CONSOLE): InlineConfig {
  return {
    configFile: false,
    envDir: false,
    root,
    base: '/console/',
    logLevel: 'warn',
    // All packages at the start: one found later would reload the page.
    optimizeDeps: { entries: ['src/**/*.tsx'] },
    // Version of the service that the console belongs to.
    define: { BERTH_VERSION: JSON.stringify(version) },
    plugins: [react(), strictStyles(), themeScript()],
    build: {
      target: 'es2023',
      // `img-src` excludes data URLs.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      chunkSizeWarningLimit: 2_000,
      license: { fileName: 'LICENSES.md' },
      rolldownOptions: { input: { index: join(root, 'index.html'), theme: THEME } },
    },
  };
}

/**
 * Runs the theme's script before the first paint: a classic script, since modules are deferred, and
 * a file, since the policy blocks inline scripts.
 */
function themeScript(): Plugin {
  return {
    name: 'theme-script',
    transformIndexHtml: {
      order: 'post',
      handler: (_html, { bundle, server }) => {
        if (server !== undefined)
          return [{ tag: 'script', attrs: { type: 'module', src: `/console/@fs${THEME}` }, injectTo: 'head-prepend' }];
        const chunk = Object.values(bundle ?? {}).find((one) => one.type === 'chunk' && one.facadeModuleId === THEME);
        if (chunk === undefined) throw new Error('the build has no script of the theme');
        return [{ tag: 'script', attrs: { src: `/console/${chunk.fileName}` }, injectTo: 'head-prepend' }];
      },
    },
  };
}
