// Origin that an app sees. Development servers accept requests to localhost only, and compare Host,
// Origin and X-Forwarded-Host with each other: Vite, webpack-dev-server, Astro, Django, Rails and
// Next. All of these headers therefore show an app a browser on its own computer. Pure.

/** Origin of a port on localhost, as a browser writes it. */
export function localOrigin(port: number): string {
  return new URL(`http://localhost:${port}`).origin;
}

/** A URL at the preview's own origin moved to the local one; others are unchanged. */
export function localUrl(url: string, ownOrigin: string, port: number): string {
  const isOwn = url === ownOrigin || url.startsWith(`${ownOrigin}/`);
  return isOwn ? localOrigin(port) + url.slice(ownOrigin.length) : url;
}
