/** Path of the web console; its pages are below. */
export const CONSOLE_PATH = '/console';
