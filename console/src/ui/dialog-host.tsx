// The dialog of a page. It outlives the part that opened it, such as a row of a list.
import { createContext, useContext, useMemo, useState, type ReactNode } from 'react';

interface DialogHostValue {
  show: (dialog: ReactNode) => void;
  close: () => void;
}

const Host = createContext<DialogHostValue>({ show: () => undefined, close: () => undefined });

/** The host of the page: shows a dialog, and closes the one that is shown. */
export const useDialogHost = (): DialogHostValue => useContext(Host);

export function DialogHost({ children }: { children: ReactNode }) {
  const [shown, show] = useState<ReactNode>(null);
  const host = useMemo(() => ({ show, close: () => show(null) }), []);
  return (
    <Host value={host}>
      {children}
      {shown}
    </Host>
  );
}
