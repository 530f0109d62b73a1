//! Parquet files are read by the engine itself: only the columns and row groups that are asked
//! for.

use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::prelude::SessionContext;

use crate::{Error, Result};

pub(super) async fn table(context: &SessionContext, path: &Path) -> Result<Arc<dyn TableProvider>> {
    let name = path.display().to_string();
    let wrong = |error: &dyn std::fmt::Display| Error::table(&name, error);
    let whole = std::fs::canonicalize(path).map_err(|error| wrong(&error))?;
    let url = url::Url::from_file_path(&whole).map_err(|()| wrong(&"is no path"))?;
    let url = ListingTableUrl::try_new(url, None).map_err(|error| wrong(&error))?;
    // Whatever the file is called, it is the one.
    let options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("");
    let config = ListingTableConfig::new(url).with_listing_options(options);
    let config =
        config.infer_schema(&context.state()).await.map_err(|error| wrong(&Error::from(error)))?;
    Ok(Arc::new(ListingTable::try_new(config).map_err(|error| wrong(&error))?))
}
