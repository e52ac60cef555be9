// Text that the person typed and a reload would lose.
import { useEffect } from 'react';

const FIELDS = 'textarea, input:not([type=search], [type=radio], [type=checkbox])';
/** Fields whose text outlives the page, and the keyboard of the terminal. */
const KEPT = '[data-kept], .xterm *';

const typed = new Set<HTMLInputElement | HTMLTextAreaElement>();

export function watchInput(): void {
  document.addEventListener('input', ({ target }) => {
    const field = target as HTMLInputElement;
    if (field.matches(FIELDS) && !field.matches(KEPT)) typed.add(field);
  });
}

export function holdsInput(): boolean {
  for (const field of typed) if (!field.isConnected) typed.delete(field);
  // Pages with unsaved text prevent an unload.
  return (
    [...typed].some(({ value }) => value !== '') || !dispatchEvent(new Event('beforeunload', { cancelable: true }))
  );
}

/** Makes the browser ask before the page is left. */
export function useUnloadGuard(active: boolean): void {
  useEffect(() => {
    if (!active) return undefined;
    const stay = (event: Event): void => event.preventDefault();
    addEventListener('beforeunload', stay);
    return () => removeEventListener('beforeunload', stay);
  }, [active]);
}
