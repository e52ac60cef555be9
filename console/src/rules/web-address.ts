/** The text if it is an http or https URL, else null: a link must not run scripts. */
export function webAddress(text: string): string | null {
  const url = URL.parse(text);
  return url !== null && ['http:', 'https:'].includes(url.protocol) ? text : null;
}
