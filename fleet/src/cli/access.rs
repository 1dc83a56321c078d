//! Who may ask a service: options that are the same for all.

use std::path::PathBuf;

use crate::cli::print_error;
use crate::error::FleetError;
use crate::http::AccessToken;

/// Who asks must send a token: Authorization: Bearer TOKEN.
#[derive(clap::Args)]
pub struct AccessArgs {
    /// Take the token from the first line of this file [default: a new token, which is printed]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Answer every user of this machine, without a token
    #[arg(long, conflicts_with = "token_file")]
    no_token: bool,
}

impl AccessArgs {
    /// The token that clients must know. `None`: none is wanted.
    ///
    /// # Errors
    /// The file has none, or the system gives no random bits.
    pub fn load_token(&self) -> Result<Option<AccessToken>, FleetError> {
        match &self.token_file {
            _ if self.no_token => Ok(None),
            None => AccessToken::new_random().map(Some),
            Some(file) => {
                if lucce_ship::is_world_readable(file) {
                    let file = file.display();
                    print_error(format_args!(
                        "{file}: every user of this machine can read the token; chmod 600 {file}"
                    ));
                }
                AccessToken::read(file).map(Some)
            }
        }
    }

    /// What is printed of a token that was made.
    pub fn describe_generated_token(&self, token: Option<&AccessToken>) -> Option<String> {
        let generated = token.filter(|_| self.token_file.is_none());
        generated.map(|token| format!("token: {}", token.as_str()))
    }
}
