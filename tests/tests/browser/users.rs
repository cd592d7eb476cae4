//! Users: added, changed and deleted by an administrator; a viewer reads only.

use crate::browser::Device;
use crate::page::PATIENCE;
use crate::run::{logged_in, nothing_wrong, with_panel};
use anyhow::{Result, ensure};
use shared::api::{NodeInput, Role, UserChange, UserInput, UserRecord};
use shared::testid;
use tests::rig::{Api, eventually};

const PASSWORD: &str = "a password for the night";
const OTHER_PASSWORD: &str = "a password for the day";

fn field(name: &str) -> String {
    testid::with(testid::USER_FIELD, name)
}

async fn users(api: &Api) -> Result<Vec<(String, String)>> {
    let list = api.text("/api/v1/users").await?;
    let list: Vec<shared::api::UserRecord> = serde_json::from_str(&list)?;
    Ok(list.into_iter().map(|user| (user.username, user.role.as_str().to_owned())).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_is_added_changed_and_deleted_and_a_viewer_changes_nothing() {
    with_panel("users", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let admin = ("admin".to_owned(), "admin".to_owned());
        logged_in(page, panel.password()).await?;
        page.open("/settings").await?;
        page.shows(&testid::with(testid::USER_ROW, 1)).await?;
        // Nobody deletes himself.
        page.hides(&testid::with(testid::USER_DELETE, 1)).await?;

        page.click(testid::USER_NEW).await?;
        page.fill(&field("username"), "night").await?;
        page.fill(&field("password"), "short").await?;
        page.click(testid::USER_SAVE).await?;
        page.shows("field-error:password").await?;
        page.fill(&field("password"), PASSWORD).await?;
        page.screenshot("zh-light-users-new").await?;
        page.click(testid::USER_SAVE).await?;
        page.shows(&testid::with(testid::USER_ROW, 2)).await?;
        ensure!(users(&api).await? == [admin.clone(), ("night".into(), "viewer".into())]);

        // The name is taken: said at the field, in the words of the page.
        page.click(testid::USER_NEW).await?;
        page.fill(&field("username"), "night").await?;
        page.fill(&field("password"), PASSWORD).await?;
        page.click(testid::USER_SAVE).await?;
        page.says("field-error:username", "名称“night”已被使用").await?;
        page.only_complains_about("/api/v1/users").await?;
        page.click(testid::CANCEL).await?;
        nothing_wrong(page).await?;

        page.click(testid::LOGOUT).await?;
        page.log_in_as("night", PASSWORD).await?;
        page.only_complains_about("/api/v1/auth/me").await?;
        page.open("/settings").await?;
        page.shows(testid::PASSWORD_SAVE).await?;
        page.hides(testid::USER_NEW).await?;
        page.open("/nodes").await?;
        page.shows(testid::EMPTY).await?;
        page.hides(testid::NODE_NEW).await?;
        nothing_wrong(page).await?;

        page.click(testid::LOGOUT).await?;
        page.log_in(panel.password()).await?;
        page.only_complains_about("/api/v1/auth/me").await?;
        page.open("/settings").await?;
        page.click(&testid::with(testid::USER_EDIT, 2)).await?;
        page.choose(&field("role"), "admin").await?;
        page.click(testid::USER_SAVE).await?;
        eventually("the role is changed", PATIENCE, async || {
            let now = users(&api).await?;
            ensure!(now == [admin.clone(), ("night".into(), "admin".into())], "{now:?}");
            Ok(())
        })
        .await?;

        page.click(&testid::with(testid::USER_DELETE, 2)).await?;
        page.click(testid::CONFIRM).await?;
        page.hides(&testid::with(testid::USER_ROW, 2)).await?;
        ensure!(users(&api).await? == [admin]);
        nothing_wrong(page).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_gets_another_password_is_asked_for_it_at_once() {
    with_panel("users-ended", Device::Desk, async |page, panel| {
        let api = panel.api().await?;
        let input = UserInput { username: "night".into(), password: PASSWORD.into(), role: Role::Viewer };
        let user: UserRecord = api.send("POST", "/api/v1/users", &input).await?;
        page.open("/").await?;
        page.log_in_as("night", PASSWORD).await?;
        page.open("/nodes").await?;
        page.shows(testid::EMPTY).await?;
        // What comes without asking comes by the event stream, so it is there.
        let node = NodeInput {
            name: "hk".to_owned(),
            server_ip: "192.0.2.1".to_owned(),
            port_range: "10000-60000".to_owned(),
            ..NodeInput::default()
        };
        let node = api.create_node(&node).await?;
        page.shows(&testid::with(testid::NODE_ROW, node.id)).await?;

        let change = UserChange { role: None, password: Some(OTHER_PASSWORD.to_owned()) };
        let _: UserRecord = api.send("PUT", &format!("/api/v1/users/{}", user.id), &change).await?;
        page.shows(testid::SESSION_DIALOG).await?;
        page.fill(testid::LOGIN_PASSWORD, OTHER_PASSWORD).await?;
        page.click(testid::LOGIN_SUBMIT).await?;
        page.hides(testid::SESSION_DIALOG).await?;
        page.shows(&testid::with(testid::NODE_ROW, node.id)).await.map(|_| ())
    })
    .await;
}
